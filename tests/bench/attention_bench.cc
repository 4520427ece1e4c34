// Whole calls of the kernels: prefill as a share of the FMA peak, decode as one of what a plain read takes. FLOP are
// 2 * (qk_head_dim + v_head_dim) for each visible pair, bytes those of keys and values.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "core/attention/fused_attention.h"
#include "core/attention/onednn_attention.h"
#include "core/base/check.h"
#include "tests/bench/attention_calls.h"
#include "tests/bench/attention_workload.h"
#include "tests/bench/bench_rows.h"
#include "tests/bench/machine_limit.h"
#include "tests/bench/row_meter.h"

namespace triad {
namespace {

constexpr AttentionRow kRows[] = {
    {.name = "F32_2048_HeadDim64"},
    {.name = "F32_2048_HeadDim128", .head_dim = 128},
    {.name = "F32_2048_HeadDim64_Causal", .causal = true},
    {.name = "F32_2048_HeadDim64_Bias", .bias = true},
    {.name = "F32_2048_HeadDim64_Keep", .keep = true},
    {.name = "F32_128_HeadDim64_Batch8", .batch = 8, .q_len = 128, .kv_len = 128},
    {.name = "F32_2048_HeadDim64_TokensHeads", .tokens_heads = true},
    {.name = "F32_16_HeadDim64_Batch64", .batch = 64, .q_len = 16, .kv_len = 16},
    {.name = "F32_128_HeadDim64_Batch8_TokensHeads", .batch = 8, .q_len = 128, .kv_len = 128, .tokens_heads = true},
    {.name = "Bf16_2048_HeadDim64", .dtype = DType::kBf16},
    {.name = "Bf16_2048_HeadDim128", .dtype = DType::kBf16, .head_dim = 128},
    {.name = "F16_2048_HeadDim64", .dtype = DType::kF16},
    {.name = "F32_2048_HeadDim64_Spread", .query_gain = 100},
    {.name = "Decode_F32_65536", .q_len = 1, .kv_len = 65536},
    {.name = "Decode_Bf16_65536", .dtype = DType::kBf16, .q_len = 1, .kv_len = 65536},
    {.name = "Decode_F32_65536_Heads32Over8", .heads = 32, .q_len = 1, .kv_len = 65536},
    {.name = "Decode_F32_65536_TokensHeads", .q_len = 1, .kv_len = 65536, .tokens_heads = true},
};

MachineLimit LimitOf(const AttentionRow& row, const AttentionWorkload& workload, const BenchOptions& options) {
  if (row.q_len == 1) return StreamLimit(options.threads, workload.KeysAndValues());
  const bool multiplies_bf16 = options.instruction_set >= InstructionSet::kAvx512Bf16;
  return row.dtype == DType::kBf16 && multiplies_bf16 ? Bf16Limit(options.threads) : FmaLimit(options.threads);
}

void Run(benchmark::State& state, const AttentionKernel& kernel, const AttentionRow& row, const BenchOptions& options) {
  AttentionWorkload workload(row);
  AttentionCalls calls(kernel, workload, options.threads);
  const auto bytes = workload.key().byte_size() + workload.value().byte_size();
  const double work = row.q_len == 1 ? static_cast<double>(bytes) : FlopNeeded(workload.problem());
  RowMeter meter(options, LimitOf(row, workload, options));
  while (meter.WantsCall()) calls.Measure(work, meter);
  meter.Report(work, state);
  if (!workload.IsRight()) state.SkipWithError("the answer differs from the reference");
}

const AttentionKernel& OneDnnKernel(const BenchOptions& options) {
  static const std::unique_ptr<OneDnnAttention> kernel = [&] {
    absl::StatusOr<std::unique_ptr<OneDnnAttention>> made = OneDnnAttention::Create(options.instruction_set);
    TRIAD_CHECK(made.ok(), "oneDNN has an engine");
    return *std::move(made);
  }();
  return *kernel;
}

const AttentionKernel& FusedKernel(const BenchOptions& options) {
  static const FusedAttention kernel(options.instruction_set);
  return kernel;
}

}  // namespace

void RegisterAttentionRows(const BenchOptions& options) {
  for (const AttentionRow& row : kRows) {
    const auto add = [&](const char* path, const AttentionKernel& kernel) {
      RegisterRow(absl::StrCat(path, "_", row.name),
                  [&row, &kernel, &options](benchmark::State& state) { Run(state, kernel, row, options); });
    };
    add("Fused", FusedKernel(options));
    add("OneDnn", OneDnnKernel(options));
  }
}

}  // namespace triad
