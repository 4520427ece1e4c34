// The kernels' speed, as a share of the core's FMA peak. One thread.
//
//   triad_bench_kernels                            all rows
//   triad_bench_kernels --benchmark_filter=Causal  one of them
//   triad_bench_kernels --benchmark_filter=Forward whole layers (forward_bench.cc)
//
// peak_ratio_median and peak_ratio_best are over the repetitions: each is bracketed by the peak loop, and the larger of
// the two peaks counts, so a core that slows down for both costs nothing and one that slows down for the peak alone
// gains nothing. FLOP are 2 * (qk_head_dim + v_head_dim) for each visible pair.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/attention/fused_attention.h"
#include "core/attention/onednn_attention.h"
#include "core/base/check.h"
#include "tests/bench/attention_workload.h"
#include "tests/bench/fma_peak.h"
#include "tests/bench/forward_bench.h"
#include "tests/bench/stream_read.h"
#include "tests/bench/threads_bench.h"

namespace triad {
namespace {

// Rows that compute.
constexpr AttentionRow kPrefillRows[] = {
    {.name = "F32_2048_HeadDim64"},
    {.name = "F32_2048_HeadDim128", .head_dim = 128},
    {.name = "F32_2048_HeadDim64_Causal", .causal = true},
    {.name = "F32_2048_HeadDim64_Bias", .bias = true},
    {.name = "F32_2048_HeadDim64_Keep", .keep = true},
    {.name = "F32_128_HeadDim64_Batch8", .batch = 8, .q_len = 128, .kv_len = 128},
    {.name = "F32_2048_HeadDim64_TokensHeads", .tokens_heads = true},
    {.name = "F32_128_HeadDim64_Batch8_TokensHeads", .batch = 8, .q_len = 128, .kv_len = 128, .tokens_heads = true},
    {.name = "Bf16_2048_HeadDim64", .dtype = DType::kBf16},
    {.name = "F16_2048_HeadDim64", .dtype = DType::kF16},
    {.name = "F32_2048_HeadDim64_Spread", .query_gain = 100},
};

// Rows that read.
constexpr AttentionRow kDecodeRows[] = {
    {.name = "Decode_F32_65536", .q_len = 1, .kv_len = 65536},
    {.name = "Decode_Bf16_65536", .dtype = DType::kBf16, .q_len = 1, .kv_len = 65536},
    {.name = "Decode_F32_65536_Heads32Over8", .heads = 32, .q_len = 1, .kv_len = 65536},
};

const AttentionKernel& OneDnnKernel() {
  static const std::unique_ptr<OneDnnAttention> kernel = [] {
    absl::StatusOr<std::unique_ptr<OneDnnAttention>> made = OneDnnAttention::Create(DetectInstructionSet());
    TRIAD_CHECK(made.ok(), "oneDNN has an engine");
    return *std::move(made);
  }();
  return *kernel;
}

const AttentionKernel& FusedKernel() {
  static const FusedAttention kernel;
  return kernel;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Key and value bytes/s beside a plain sequential read of the same buffers, and beside the best of 1, 2, 4 and 8
// parallel ones, all within the same tenth of a second.
void RunDecodeRow(benchmark::State& state, const AttentionKernel& kernel, const AttentionRow& row) {
  AttentionWorkload workload(row);
  Scratch scratch;
  const int64_t bytes = workload.key().byte_size();
  std::vector<double> plain_ratios, best_ratios;
  double best_rate = 0;
  for (auto _ : state) {
    const auto read = [&](int streams) {
      return std::min(MeasureStreamRead(workload.key().data(), bytes, streams),
                      MeasureStreamRead(workload.value().data(), bytes, streams));
    };
    const double plain = read(1);
    const double start = ThreadSeconds();
    TRIAD_CHECK(RunAll(kernel, workload.problem(), workload.outputs(), scratch).ok(), "the kernel runs");
    const double seconds = ThreadSeconds() - start;
    const double rate = 2 * static_cast<double>(bytes) / seconds;
    state.SetIterationTime(seconds);
    plain_ratios.push_back(rate / std::max(plain, read(1)));
    best_ratios.push_back(rate / std::max({plain, read(2), read(4), read(8)}));
    best_rate = std::max(best_rate, rate);
  }
  if (!workload.IsRight()) state.SkipWithError("the answer differs from the reference");
  state.counters["stream_ratio_best"] = *std::max_element(plain_ratios.begin(), plain_ratios.end());
  state.counters["stream_ratio_median"] = Median(plain_ratios);
  state.counters["best_stream_ratio_median"] = Median(best_ratios);
  state.counters["best_bytes_per_s"] = best_rate;
}

void RunPrefillRow(benchmark::State& state, const AttentionKernel& kernel, const AttentionRow& row) {
  AttentionWorkload workload(row);
  Scratch scratch;
  const std::vector<WorkItem> items = kernel.Plan(workload.problem());
  // One sample is some items, a few ms, so that the peaks around it were measured on the same core in the same mood.
  const double flop = FlopNeeded(workload.problem()) / static_cast<double>(items.size());
  const size_t sample_items = std::max<size_t>(1, static_cast<size_t>(5e8 / flop));
  std::vector<double> ratios;
  double best_rate = 0;
  for (auto _ : state) {
    double flop_done = 0;
    double needed_peak = 0;
    double seconds = 0;
    for (size_t first = 0; first < items.size(); first += sample_items) {
      const size_t last = std::min(items.size(), first + sample_items);
      const double peak_before = MeasureFmaPeak(/*pieces=*/5);
      const double start = ThreadSeconds();
      for (size_t i = first; i < last; ++i) {
        TRIAD_CHECK(kernel.Run(workload.problem(), items[i], workload.outputs(), scratch).ok(), "the kernel runs");
      }
      const double sample_seconds = ThreadSeconds() - start;
      const double peak = std::max(peak_before, MeasureFmaPeak(/*pieces=*/5));
      seconds += sample_seconds;
      needed_peak += peak * sample_seconds;
      flop_done += flop * static_cast<double>(last - first);
    }
    state.SetIterationTime(seconds);
    ratios.push_back(flop_done / needed_peak);
    best_rate = std::max(best_rate, flop_done / seconds);
  }
  if (!workload.IsRight()) state.SkipWithError("the answer differs from the reference");
  state.counters["peak_ratio_best"] = *std::max_element(ratios.begin(), ratios.end());
  state.counters["peak_ratio_median"] = Median(ratios);
  state.counters["best_flop_per_s"] = best_rate;
}

using RunRow = void (*)(benchmark::State&, const AttentionKernel&, const AttentionRow&);

// Each row by both kernels.
void Register(absl::Span<const AttentionRow> rows, RunRow run) {
  for (const AttentionRow& row : rows) {
    const auto add = [&](const char* path, const AttentionKernel& kernel) {
      benchmark::RegisterBenchmark(absl::StrCat("BM_", path, "_", row.name).c_str(),
                                   [&row, &kernel, run](benchmark::State& state) { run(state, kernel, row); })
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    };
    add("Fused", FusedKernel());
    add("OneDnn", OneDnnKernel());
  }
}

}  // namespace
}  // namespace triad

int main(int argc, char** argv) {
  triad::Register(triad::kPrefillRows, triad::RunPrefillRow);
  triad::Register(triad::kDecodeRows, triad::RunDecodeRow);
  triad::RegisterThreadRows();
  triad::RegisterForwardRows();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
