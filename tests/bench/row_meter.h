// How every row is measured: in pieces of a few ms, each bracketed by the machine's limit, which is measured for a
// fraction of that. On a shared machine two moments a tenth of a second apart are not comparable; these are.
//
//     call 1   limit [piece 1] limit [piece 2] limit .. [piece p] limit
//     call 2   limit [piece 1] ..                           what a piece cost = its seconds * the larger limit beside
//     it:
//     ..                                                    the work that the machine could have done meanwhile
//
// The row's cost is the sum over its pieces of the median over the calls; its ratio, the work of a call over that cost.
// So every item of a call counts once, dear ones too, and a burst of the neighbours' spoils one sample of a piece or
// two. A core that slows down for both costs nothing, and one that slows down for the limit alone gains nothing.
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "tests/bench/bench_rows.h"
#include "tests/bench/machine_limit.h"

namespace triad {

// What a meter asks of the machine, as ProbeCores and RunOnThreads answer it. A test plays it.
struct MeterMachine {
  std::function<double(int threads)> probe_cores;
  std::function<double(int threads, const std::function<void(int thread)>& work)> run_on_threads;
};
MeterMachine RealMachine();

//   RowMeter meter(options, FmaLimit(options.threads));
//   while (meter.WantsCall()) {
//     meter.Run(work_of_items, run_item);
//     meter.EndCall();
//   }
//   meter.Report(work_of_a_call, state);
//
// With several threads, a probe of the cores stands before and after every two seconds of calls; what lies between
// probes that did not find all of them is thrown away, counted and made again, within reason. With one thread the
// probes are reported, no more.
class RowMeter {
 public:
  // Computes item `item` on thread `thread`, of options.threads.
  using RunItem = std::function<void(size_t item, int thread)>;

  RowMeter(const BenchOptions& options, MachineLimit limit, MeterMachine machine = RealMachine());

  // Whether another call is to be measured.
  bool WantsCall();

  // Runs each item once, every thread taking the next one, with a stop of all threads where a piece ends. May be called
  // several times in a call; every call has the same items. work: of each item, for cutting pieces only.
  void Run(absl::Span<const double> work, const RunItem& run);
  void EndCall();

  // Of a call, from the calls that count: what the first of the limits could have done meanwhile.
  bool has_calls() const { return !kept_.empty(); }
  double MedianCost() const { return CostOf(/*limit=*/0); }
  double MeanSeconds() const;

  // Sets the iteration's time (the mean call), what the probes found, and the largest limit seen.
  void ReportTime(benchmark::State& state) const;
  // Instead: that, and <limit>_ratio_median, <limit>_ratio_best (the best call) and best_<unit>_per_s. work: of a call.
  void Report(double work, benchmark::State& state) const;

 private:
  struct Piece {
    double seconds = 0;
    std::vector<double> limits;  // from before and after
  };
  using Call = std::vector<Piece>;

  static double SecondsOf(const Call& call);
  void ClosePiece(double done);
  void Settle();
  double CostOf(size_t limit) const;
  double BestCostOf(size_t limit) const;

  const BenchOptions options_;
  const MachineLimit limit_;
  const MeterMachine machine_;
  std::vector<double> largest_;  // limits
  double cores_before_ = 0;      // at the last probe
  double least_cores_ = 0;       // of all probes
  std::vector<Call> kept_;
  std::vector<Call> pending_;  // since the last probe
  double kept_seconds_ = 0;
  double pending_seconds_ = 0;
  double thrown_away_seconds_ = 0;
  size_t thrown_away_ = 0;
  // The call that is being measured, and its open piece.
  Call call_;
  std::vector<double> limits_before_;  // empty: a piece has yet to be opened
  double piece_seconds_ = 0;
  double piece_work_ = 0;
};

// For two that measure by turns: whether either wants another call.
bool EitherWantsCall(RowMeter& one, RowMeter& other);

}  // namespace triad
