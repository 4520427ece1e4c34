#include "tests/bench/row_meter.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/bench/cores_probe.h"
#include "tests/bench/run_on_threads.h"

namespace triad {
namespace {

constexpr double kMostSecondsBetweenProbes = 2;
constexpr double kPatience = 2;  // times the wanted seconds, thrown away, before a row gives up

}  // namespace

MeterMachine RealMachine() { return {.probe_cores = ProbeCores, .run_on_threads = RunOnThreads}; }

RowMeter::RowMeter(const BenchOptions& options, MachineLimit limit, MeterMachine machine)
    : options_(options),
      limit_(std::move(limit)),
      machine_(std::move(machine)),
      largest_(limit_.names.size()),
      cores_before_(machine_.probe_cores(std::max(2, options.threads))),
      least_cores_(cores_before_) {}

bool RowMeter::WantsCall() {
  const bool has_enough = kept_seconds_ + pending_seconds_ >= options_.seconds;
  if (!pending_.empty() && (has_enough || pending_seconds_ >= kMostSecondsBetweenProbes)) Settle();
  return kept_seconds_ < options_.seconds && thrown_away_seconds_ < kPatience * options_.seconds;
}

void RowMeter::Settle() {
  const double cores_after = machine_.probe_cores(std::max(2, options_.threads));
  const bool counts = options_.threads == 1 || std::min(cores_before_, cores_after) >= CoresNeeded(options_.threads);
  if (counts) {
    kept_seconds_ += pending_seconds_;
    kept_.insert(kept_.end(), std::make_move_iterator(pending_.begin()), std::make_move_iterator(pending_.end()));
  } else {
    thrown_away_seconds_ += pending_seconds_;
    thrown_away_ += pending_.size();
  }
  cores_before_ = cores_after;
  least_cores_ = std::min(least_cores_, cores_after);
  pending_.clear();
  pending_seconds_ = 0;
}

void RowMeter::Run(absl::Span<const double> work, const RunItem& run) {
  for (size_t first = 0; first < work.size();) {
    if (limits_before_.empty()) limits_before_ = limit_.measure(/*done=*/0);
    size_t last = first;
    while (last < work.size() && (last == first || piece_work_ < limit_.piece_work)) piece_work_ += work[last++];
    std::atomic<size_t> next{first};
    piece_seconds_ += machine_.run_on_threads(options_.threads, [&](int thread) {
      for (size_t item = next++; item < last; item = next++) run(item, thread);
    });
    if (piece_work_ >= limit_.piece_work) ClosePiece(static_cast<double>(last) / static_cast<double>(work.size()));
    first = last;
  }
}

void RowMeter::ClosePiece(double done) {
  std::vector<double> limits_after = limit_.measure(done);
  Piece piece{.seconds = piece_seconds_};
  for (size_t i = 0; i < limits_after.size(); ++i) {
    const double larger = std::max(limits_before_[i], limits_after[i]);
    piece.limits.push_back(limit_.larger_counts ? larger : (limits_before_[i] + limits_after[i]) / 2);
    largest_[i] = std::max(largest_[i], larger);
  }
  call_.push_back(std::move(piece));
  limits_before_ = std::move(limits_after);
  piece_seconds_ = piece_work_ = 0;
}

void RowMeter::EndCall() {
  if (piece_seconds_ > 0) ClosePiece(/*done=*/1);
  limits_before_.clear();
  pending_seconds_ += SecondsOf(call_);
  pending_.push_back(std::exchange(call_, {}));
}

double RowMeter::SecondsOf(const Call& call) {
  double seconds = 0;
  for (const Piece& piece : call) seconds += piece.seconds;
  return seconds;
}

double RowMeter::CostOf(size_t limit) const {
  double cost = 0;
  std::vector<double> of_calls(kept_.size());
  for (size_t piece = 0; piece < kept_.front().size(); ++piece) {
    for (size_t call = 0; call < kept_.size(); ++call) {
      of_calls[call] = kept_[call][piece].seconds * kept_[call][piece].limits[limit];
    }
    const auto middle = of_calls.begin() + static_cast<std::ptrdiff_t>(of_calls.size() / 2);
    std::nth_element(of_calls.begin(), middle, of_calls.end());
    cost += *middle;
  }
  return cost;
}

double RowMeter::BestCostOf(size_t limit) const {
  double best = 0;
  for (const Call& call : kept_) {
    double cost = 0;
    for (const Piece& piece : call) cost += piece.seconds * piece.limits[limit];
    if (best == 0 || cost < best) best = cost;
  }
  return best;
}

double RowMeter::MeanSeconds() const { return kept_seconds_ / static_cast<double>(std::max<size_t>(1, kept_.size())); }

void RowMeter::ReportTime(benchmark::State& state) const {
  state.SetIterationTime(MeanSeconds());
  state.counters["threads"] = options_.threads;
  state.counters["cores"] = least_cores_;
  state.counters["calls"] = static_cast<double>(kept_.size());
  state.counters["thrown_away"] = static_cast<double>(thrown_away_);
  for (size_t i = 0; i < limit_.names.size(); ++i) {
    state.counters[absl::StrCat(limit_.names[i], "_", limit_.unit, "_per_s")] = largest_[i];
  }
}

void RowMeter::Report(double work, benchmark::State& state) const {
  ReportTime(state);
  if (!has_calls()) return;
  for (size_t i = 0; i < limit_.names.size(); ++i) {
    state.counters[absl::StrCat(limit_.names[i], "_ratio_median")] = work / CostOf(i);
    state.counters[absl::StrCat(limit_.names[i], "_ratio_best")] = work / BestCostOf(i);
  }
  double fastest = 0;
  for (const Call& call : kept_) {
    if (fastest == 0 || SecondsOf(call) < fastest) fastest = SecondsOf(call);
  }
  state.counters[absl::StrCat("best_", limit_.unit, "_per_s")] = work / fastest;
}

bool EitherWantsCall(RowMeter& one, RowMeter& other) {
  const bool one_wants = one.WantsCall();
  return other.WantsCall() || one_wants;  // both are asked: their probes are to be no further apart
}

}  // namespace triad
