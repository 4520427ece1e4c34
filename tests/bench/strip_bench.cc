// The parts of the fused kernel's items of many rows, each alone, beside the FMA peak and beside whole items of the
// first row (F32_2048_HeadDim64), measured by turns:
//   BM_Part_Strip_Scores   queries . keys (lane_product.h)
//   BM_Part_Strip_Softmax  weights, maxima and sums (lane_softmax.h): cycles_per_vector, counted in the peak loop's
//                          cycles of two multiply-adds each, so that a vector's width does not matter
//   BM_Part_Strip_Values   weights . values (lane_product.h)
// item_share is the part's share of an item's time; what the three leave of 1 is packing, merging, and waiting for
// memory.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/attention/fused_attention.h"
#include "core/base/check.h"
#include "core/base/cpu.h"
#include "core/base/scratch.h"
#include "tests/bench/attention_workload.h"
#include "tests/bench/bench_rows.h"
#include "tests/bench/machine_limit.h"
#include "tests/bench/row_meter.h"
#include "tests/bench/strip_operands.h"

namespace triad {
namespace {

constexpr AttentionRow kWholeRow = {.name = "F32_2048_HeadDim64"};
constexpr double kFlopPerCycle = 4;  // of each lane: two multiply-adds

struct StripPart {
  const char* name;
  void (StripOperands::*run)();
  double peak_flop;  // for each (row, key): what the peak loop does meanwhile, roughly where it is no product
  bool multiplies = true;
};

constexpr StripPart kParts[] = {
    {.name = "Scores", .run = &StripOperands::MultiplyKeys, .peak_flop = 2.0 * kWholeRow.head_dim},
    {.name = "Softmax", .run = &StripOperands::Softmax, .peak_flop = 10 * kFlopPerCycle, .multiplies = false},
    {.name = "Values", .run = &StripOperands::AddValues, .peak_flop = 2.0 * kWholeRow.head_dim},
};

// Some items of the whole kernel, a few ms.
class WholeItems {
 public:
  explicit WholeItems(int threads)
      : workload_(kWholeRow), items_(kernel_.Plan(workload_.problem())), scratches_(static_cast<size_t>(threads)) {
    items_.resize(std::min(items_.size(), 4 * scratches_.size()));
  }

  int64_t rows_of_first() const { return items_.front().row_end - items_.front().row_begin; }

  // (row, key) of the items of a call.
  double pairs() const {
    double rows = 0;
    for (const WorkItem& item : items_) rows += static_cast<double>(item.row_end - item.row_begin);
    return rows * static_cast<double>(kWholeRow.kv_len);
  }

  void Measure(RowMeter& meter) {
    std::vector<double> work;
    for (const WorkItem& item : items_) work.push_back(item.flop);
    meter.Run(work, [&](size_t item, int thread) {
      Scratch& scratch = scratches_[static_cast<size_t>(thread)];
      TRIAD_CHECK(kernel_.Run(workload_.problem(), items_[item], workload_.outputs(), scratch).ok(), "it runs");
    });
    meter.EndCall();
  }

 private:
  const FusedAttention kernel_{DetectInstructionSet()};
  AttentionWorkload workload_;
  std::vector<WorkItem> items_;
  std::vector<Scratch> scratches_;
};

void Run(benchmark::State& state, const StripPart& part, const BenchOptions& options) {
  WholeItems whole(options.threads);
  std::vector<std::unique_ptr<StripOperands>> operands;  // of each thread
  for (int thread = 0; thread < options.threads; ++thread) {
    operands.push_back(std::make_unique<StripOperands>(whole.rows_of_first(), kWholeRow.head_dim));
    if (!operands.back()->IsRight()) return state.SkipWithError("the result differs from plain loops");
  }
  const double pairs_of_item = operands[0]->pairs();
  const double flop_of_item = pairs_of_item * part.peak_flop;
  MachineLimit limit = FmaLimit(options.threads);
  const std::vector<double> work(static_cast<size_t>(limit.piece_work / flop_of_item) + 1, flop_of_item);
  const auto items = static_cast<double>(work.size());
  RowMeter part_meter(options, limit);
  RowMeter whole_meter(options, limit);
  while (EitherWantsCall(part_meter, whole_meter)) {
    part_meter.Run(work, [&](size_t, int thread) { (*operands[static_cast<size_t>(thread)].*part.run)(); });
    part_meter.EndCall();
    whole.Measure(whole_meter);
  }
  const double pairs = items * pairs_of_item;
  if (part.multiplies) {
    part_meter.Report(items * flop_of_item, state);
  } else {
    part_meter.ReportTime(state);
  }
  if (!part_meter.has_calls()) return;
  const double cost_of_pair = part_meter.MedianCost() / pairs;
  if (!part.multiplies) {
    state.counters["cycles_per_vector"] = cost_of_pair / kFlopPerCycle;
    state.counters["ns_per_16_scores"] = 16e9 * part_meter.MeanSeconds() / pairs;
  }
  if (!whole_meter.has_calls()) return;
  state.counters["item_share"] = cost_of_pair / (whole_meter.MedianCost() / whole.pairs());
}

}  // namespace

void RegisterStripRows(const BenchOptions& options) {
  for (const StripPart& part : kParts) {
    RegisterRow(std::string("Part_Strip_") + part.name,
                [&part, &options](benchmark::State& state) { Run(state, part, options); });
  }
}

}  // namespace triad
