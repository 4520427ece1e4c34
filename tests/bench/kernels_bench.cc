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
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/attention/fused_attention.h"
#include "core/attention/onednn_attention.h"
#include "core/attention/reference_attention.h"
#include "core/attention/validate_attention.h"
#include "core/base/check.h"
#include "tests/bench/fma_peak.h"
#include "tests/bench/forward_bench.h"

namespace triad {
namespace {

struct Row {
  const char* name;
  DType dtype = DType::kF32;
  int64_t batch = 1;
  int64_t heads = 8;
  int64_t tokens = 2048;  // q_len and kv_len
  int64_t head_dim = 64;
  bool causal = false;
  bool bias = false;
  bool keep = false;
  float query_gain = 1;  // spreads the logits
};

constexpr Row kRows[] = {
    {.name = "F32_2048_HeadDim64"},
    {.name = "F32_2048_HeadDim128", .head_dim = 128},
    {.name = "F32_2048_HeadDim64_Causal", .causal = true},
    {.name = "F32_2048_HeadDim64_Bias", .bias = true},
    {.name = "F32_2048_HeadDim64_Keep", .keep = true},
    {.name = "F32_128_HeadDim64_Batch8", .batch = 8, .tokens = 128},
    {.name = "Bf16_2048_HeadDim64", .dtype = DType::kBf16},
    {.name = "F16_2048_HeadDim64", .dtype = DType::kF16},
    {.name = "F32_2048_HeadDim64_Spread", .query_gain = 100},
};

Tensor Normal(DType dtype, Shape shape, float gain, std::mt19937_64& random) {
  Tensor tensor = *Tensor::Zeros(dtype, std::move(shape));
  std::normal_distribution<float> normal(0, gain);
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    StoreElement(tensor.data() + i * ByteSize(dtype), dtype, normal(random));
  }
  return tensor;
}

Tensor KeepMask(Shape shape, std::mt19937_64& random) {
  Tensor tensor = *Tensor::Zeros(DType::kBool, std::move(shape));
  for (int64_t i = 0; i < tensor.byte_size(); ++i) tensor.data()[i] = std::byte{random() % 8 != 0};
  return tensor;
}

// A row's request, and room for its answer.
class Workload {
 public:
  explicit Workload(const Row& row) {
    std::mt19937_64 random(20240229);
    const Shape shape = {row.batch, row.heads, row.tokens, row.head_dim};
    query_ = Normal(row.dtype, shape, row.query_gain, random);
    key_ = Normal(row.dtype, shape, 1, random);
    value_ = Normal(row.dtype, shape, 1, random);
    AttentionRequest request;
    request.query = query_.view();
    request.key = key_.view();
    request.value = value_.view();
    request.layout = Layout::kHeadsTokens;
    request.causal = row.causal;
    request.alignment = Alignment::kTopLeft;
    const Shape mask_shape = {row.batch, row.heads, row.tokens, row.tokens};
    if (row.bias) request.bias = (bias_ = Normal(DType::kF32, mask_shape, 1, random)).view();
    if (row.keep) request.keep = (keep_ = KeepMask(mask_shape, random)).view();
    absl::StatusOr<AttentionProblem> problem = ValidateAttention(request, AttentionLimits());
    TRIAD_CHECK(problem.ok(), "a bench's request is legal");
    problem_ = *std::move(problem);
    output_ = *Tensor::Zeros(row.dtype, problem_.output_shape);
  }

  const AttentionProblem& problem() const { return problem_; }
  AttentionOutputs outputs() { return {.output = output_.data()}; }

  // Whether every 97th query is what the reference makes of it, give or take the type's rounding of numbers about 1.
  bool IsRight() {
    const Tensor computed = *Tensor::CopyFrom(output_.view());
    const ReferenceAttention reference;
    Scratch scratch;
    double worst = 0;
    for (const WorkItem& item : reference.Plan(problem_)) {
      if (item.row_begin % 97 != 0) continue;
      TRIAD_CHECK(reference.Run(problem_, item, outputs(), scratch).ok(), "the reference does not fail");
    }
    const DType dtype = output_.dtype();
    for (int64_t i = 0; i < output_.byte_size(); i += ByteSize(dtype)) {
      worst = std::max(worst, std::fabs(double{LoadElement(output_.data() + i, dtype)} -
                                        double{LoadElement(computed.data() + i, dtype)}));
    }
    return worst <= (dtype == DType::kF32 ? 1e-3 : 3e-2);
  }

 private:
  Tensor query_, key_, value_, bias_, keep_, output_;
  AttentionProblem problem_;
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

void RunRow(benchmark::State& state, const AttentionKernel& kernel, const Row& row) {
  Workload workload(row);
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
  std::sort(ratios.begin(), ratios.end());
  state.counters["peak_ratio_best"] = ratios.back();
  state.counters["peak_ratio_median"] = ratios[ratios.size() / 2];
  state.counters["best_flop_per_s"] = best_rate;
}

}  // namespace
}  // namespace triad

int main(int argc, char** argv) {
  for (const triad::Row& row : triad::kRows) {
    const auto add = [&row](const char* path, const triad::AttentionKernel& kernel) {
      benchmark::RegisterBenchmark((std::string("BM_") + path + "_" + row.name).c_str(),
                                   [&row, &kernel](benchmark::State& state) { triad::RunRow(state, kernel, row); })
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    };
    add("Fused", triad::FusedKernel());
    add("OneDnn", triad::OneDnnKernel());
  }
  triad::RegisterForwardRows();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
