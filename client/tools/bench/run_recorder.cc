#include "client/tools/bench/run_recorder.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace triad::tools {
namespace {

constexpr double kMostLateShare = 0.01;

// Before a run is given up: requests of other lengths may be served.
constexpr Duration kLeastRefusedTime = std::chrono::seconds(1);
constexpr int64_t kLeastRefused = 10;
constexpr absl::StatusCode kRefusalsForGood[] = {absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound,
                                                 absl::StatusCode::kPermissionDenied,
                                                 absl::StatusCode::kUnauthenticated, absl::StatusCode::kUnimplemented};

double ToSeconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Duration ToChrono(absl::Duration duration) { return absl::ToChronoNanoseconds(duration); }

}  // namespace

int64_t RunResult::answered() const {
  int64_t sum = 0;
  for (const CodeCount& code : codes) sum += code.count;
  return sum;
}

double RunResult::PerSecond(int64_t count) const {
  return elapsed > Duration::zero() ? static_cast<double>(count) / ToSeconds(elapsed) : 0;
}

void RunRecorder::OnSent(Time due, Time sent) {
  MutexLock lock(mu_);
  ++result_.sent;
  result_.send_delay.Record(sent - due);
  if (sent - due > options_.late_after) ++result_.late;
  result_.series.AddSent(sent - start_);
}

void RunRecorder::OnDropped(Time due) {
  MutexLock lock(mu_);
  ++result_.dropped;
  result_.series.AddFailed(due - start_);
}

void RunRecorder::OnResult(const RequestTimes& times, const client::Timings& timings) {
  const Duration latency = times.answered - times.due;
  const Duration uncorrected = times.answered - times.sent;
  MutexLock lock(mu_);
  RunResult& r = result_;
  ++r.codes[0].count;
  r.latency.Record(latency);
  r.uncorrected.Record(uncorrected);
  r.queue.Record(ToChrono(timings.queue));
  r.compute.Record(ToChrono(timings.compute));
  r.rest.Record(ToChrono(timings.total - timings.queue - timings.compute));
  r.wire.Record(uncorrected - ToChrono(timings.total));
  if (options_.slo && latency <= options_.slo->limit) ++r.within_slo;
  r.series.AddSucceeded(times.answered - start_, latency);
  r.elapsed = std::max(r.elapsed, Duration(times.answered - start_));
}

bool RunRecorder::OnError(const RequestTimes& times, const absl::Status& status) {
  const auto code = std::min(static_cast<size_t>(status.code()), kStatusCodes - 1);
  MutexLock lock(mu_);
  CodeCount& count = result_.codes[code];
  if (count.count++ == 0) count.first_message = std::string(status.message());
  result_.series.AddFailed(times.answered - start_);
  return IsRefusedForGood(result_, times.answered - start_);
}

void RunRecorder::OnSendingEnded(Time now) {
  MutexLock lock(mu_);
  result_.elapsed = std::max(result_.elapsed, Duration(now - start_));
}

RunResult RunRecorder::Result() const {
  MutexLock lock(mu_);
  return result_;
}

std::string RunRecorder::Summary(Time now) const {
  MutexLock lock(mu_);
  const double seconds = ToSeconds(now - start_);
  const int64_t failed = result_.answered() - result_.succeeded() + result_.dropped;
  return absl::StrFormat("%.0f/s  p50 %s  p99 %s  errors %d",
                         seconds > 0 ? static_cast<double>(result_.succeeded()) / seconds : 0,
                         ShortPercentile(result_.latency, 0.5), ShortPercentile(result_.latency, 0.99), failed);
}

absl::Status CheckGenerator(const RunResult& result, const RecorderOptions& options) {
  if (result.dropped > 0) {
    return absl::OutOfRangeError(
        absl::StrCat(result.dropped, " of ", result.due(),
                     " requests were not sent, because --max-in-flight were: the load was less "
                     "than asked for. Raise --max-in-flight, or lower --timeout or the rate"));
  }
  if (static_cast<double>(result.late) > kMostLateShare * static_cast<double>(result.sent)) {
    return absl::OutOfRangeError(absl::StrFormat(
        "%d of %d requests were sent more than %s late: this machine could not keep up with the schedule. Lower the "
        "rate, or give the load tool a machine or cores of its own",
        result.late, result.sent, ShortDuration(options.late_after)));
  }
  return absl::OkStatus();
}

bool IsRefusedForGood(const RunResult& result, Duration elapsed) {
  int64_t refused = 0;
  for (const absl::StatusCode code : kRefusalsForGood) refused += result.codes[static_cast<size_t>(code)].count;
  return elapsed >= kLeastRefusedTime && refused >= kLeastRefused && refused == result.answered();
}

std::string ShortDuration(Duration duration) {
  constexpr struct {
    double ns;
    const char* name;
  } kUnits[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
  const auto ns = static_cast<double>(duration.count());
  for (const auto& unit : kUnits) {
    if (std::abs(ns) < unit.ns * 0.9995) continue;  // what rounds to 1000 of the smaller unit is 1.00 of this one
    const double value = ns / unit.ns;
    const int decimals = std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0;
    return absl::StrFormat("%.*f%s", decimals, value, unit.name);
  }
  return absl::StrCat(duration.count(), "ns");
}

std::string ShortPercentile(const LatencyHistogram& histogram, double share) {
  return histogram.empty() ? "-" : ShortDuration(histogram.Percentile(share));
}

}  // namespace triad::tools
