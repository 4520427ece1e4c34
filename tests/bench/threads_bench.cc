// What a second thread adds: the row's ratio to the limit of two threads over its ratio to the limit of one, calls of
// both by turns. So 1 is what the second thread adds to the FMA loop or, for decode, to a plain read.
#include <benchmark/benchmark.h>

#include <string>

#include "core/attention/fused_attention.h"
#include "tests/bench/attention_calls.h"
#include "tests/bench/attention_workload.h"
#include "tests/bench/bench_rows.h"
#include "tests/bench/machine_limit.h"
#include "tests/bench/row_meter.h"

namespace triad {
namespace {

constexpr AttentionRow kRows[] = {
    {.name = "F32_2048_HeadDim64"},
    {.name = "F32_128_HeadDim64_Batch8", .batch = 8, .q_len = 128, .kv_len = 128},
    {.name = "Decode_F32_65536_OneHead", .heads = 1, .kv_heads = 1, .q_len = 1, .kv_len = 65536},
};

void Run(benchmark::State& state, const AttentionRow& row, BenchOptions options) {
  const FusedAttention kernel(options.instruction_set);
  AttentionWorkload workload(row);
  AttentionCalls calls(kernel, workload, /*threads=*/2);
  const bool reads = row.q_len == 1;
  const auto bytes = workload.key().byte_size() + workload.value().byte_size();
  const double work = reads ? static_cast<double>(bytes) : FlopNeeded(workload.problem());
  const auto meter_of = [&](int threads) {
    options.threads = threads;
    return RowMeter(options, reads ? StreamLimit(threads, workload.KeysAndValues()) : FmaLimit(threads));
  };
  RowMeter one = meter_of(1);
  RowMeter two = meter_of(2);
  while (EitherWantsCall(one, two)) {
    calls.Measure(work, one);
    calls.Measure(work, two);
  }
  two.Report(work, state);
  if (one.has_calls() && two.has_calls()) state.counters["speedup_ratio_median"] = one.MedianCost() / two.MedianCost();
  if (!workload.IsRight()) state.SkipWithError("the answer differs from the reference");
}

}  // namespace

void RegisterThreadRows(const BenchOptions& options) {
  for (const AttentionRow& row : kRows) {
    RegisterRow(std::string("Threads2_") + row.name,
                [&row, &options](benchmark::State& state) { Run(state, row, options); });
  }
}

}  // namespace triad
