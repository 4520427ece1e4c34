// What one run measures.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "client/tools/bench/latency_histogram.h"
#include "client/tools/bench/service_level.h"
#include "client/tools/bench/time_series.h"
#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "triad/attend.h"

namespace triad::tools {

// The three moments of one request.
struct RequestTimes {
  Time due;   // open loop: by the schedule; closed loop: when the answer before it had come
  Time sent;  // when it was handed to the client library
  Time answered;
};

constexpr size_t kStatusCodes = 17;  // of gRPC, OK included

struct CodeCount {
  int64_t count = 0;
  std::string first_message;  // of the first answer with this code
};

// Why a run ended.
enum class RunEnd {
  kComplete,     // all was sent that was to be
  kInterrupted,  // by the user
  kRefused,      // IsRefusedForGood
};

struct RunResult {
  // Answers that brought a result. All but `latency` and `slo` are of those only; in `slo` others count as misses.
  LatencyHistogram latency;      // from when it was due: what a user waits, whatever held the sender up
  LatencyHistogram uncorrected;  // from when it was sent: flatters, because a stalled sender asks nobody
  LatencyHistogram queue;        // on the server, by the replies' timings: accepted to first work item
  LatencyHistogram compute;      // first to last work item
  LatencyHistogram rest;         // what else passed on the server: decoding, validation, handing over the reply
  LatencyHistogram wire;         // uncorrected less the server's total: both transports, and the client
  LatencyHistogram send_delay;   // of everything sent: due to sent
  int64_t late = 0;              // sent more than RecorderOptions::late_after past due
  int64_t dropped = 0;           // due and not sent, because too many were in flight
  int64_t sent = 0;
  int64_t within_slo = 0;
  std::array<CodeCount, kStatusCodes> codes;  // by absl::StatusCode; dropped ones are not among them
  TimeSeries series;
  Duration elapsed = {};  // start to the end of sending, or the last result if that was later

  int64_t succeeded() const { return codes[0].count; }
  int64_t answered() const;
  // Of what was due: sent or dropped.
  int64_t due() const { return sent + dropped; }
  // Results, or those within the SLO, per second; 0 when no time has passed.
  double throughput() const { return PerSecond(succeeded()); }
  double goodput() const { return PerSecond(within_slo); }

 private:
  double PerSecond(int64_t count) const;
};

struct RecorderOptions {
  std::optional<ServiceLevel> slo = {};
  Duration late_after = std::chrono::milliseconds(10);
};

// Collects a run's measurements from the threads that see them. Thread-safe; memory is bounded.
class RunRecorder {
 public:
  // The run starts now, at `start`.
  RunRecorder(const RecorderOptions& options, Time start) : options_(options), start_(start) {}

  Time start() const { return start_; }

  void OnSent(Time due, Time sent) ABSL_LOCKS_EXCLUDED(mu_);
  void OnDropped(Time due) ABSL_LOCKS_EXCLUDED(mu_);
  void OnResult(const RequestTimes& times, const client::Timings& timings) ABSL_LOCKS_EXCLUDED(mu_);
  // A request that ended, after it was sent, with an error. Returns IsRefusedForGood.
  bool OnError(const RequestTimes& times, const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  void OnSendingEnded(Time now) ABSL_LOCKS_EXCLUDED(mu_);

  // A copy of all of it; for the end of a run.
  RunResult Result() const ABSL_LOCKS_EXCLUDED(mu_);
  // "1234/s  p50 210us  p99 1.2ms  errors 0": for a line on a terminal, `now`.
  std::string Summary(Time now) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const RecorderOptions options_;
  const Time start_;

  mutable Mutex mu_;
  RunResult result_ ABSL_GUARDED_BY(mu_);
};

// Why a result does not say what an open loop of that schedule would have met: more than 1 % of the sends were late, or
// some were dropped. OK where neither holds.
absl::Status CheckGenerator(const RunResult& result, const RecorderOptions& options);

// Whether going on is pointless: a second and ten answers have brought nothing but refusals that would be the same
// another time (INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, UNAUTHENTICATED, UNIMPLEMENTED).
bool IsRefusedForGood(const RunResult& result, Duration elapsed);

// "812ns", "12.3us", "4.56ms", "1.20s": three digits.
std::string ShortDuration(Duration duration);
// The same for a percentile; "-" where nothing was recorded.
std::string ShortPercentile(const LatencyHistogram& histogram, double share);

}  // namespace triad::tools
