// A hosted layer's speed as a share of the FMA peak. FLOP are those that the answer needs: projections of the tokens,
// and the attention's visible pairs.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/fast_attention.h"
#include "core/base/check.h"
#include "core/layer/forward_batch.h"
#include "core/layer/layer_tensors.h"
#include "tests/bench/bench_rows.h"
#include "tests/bench/machine_limit.h"
#include "tests/bench/row_meter.h"
#include "tests/support/layer_reference.h"

namespace triad {
namespace {

struct ForwardRow {
  const char* name;
  int64_t requests = 1;
  int64_t tokens = 1024;  // of each request
  DType dtype = DType::kF32;
  int64_t rotary_dim = 0;
};

// All 512 wide, 8 heads of 64.
constexpr ForwardRow kForwardRows[] = {
    {.name = "F32_512_1024"},
    {.name = "F32_512_1024_Rotary", .rotary_dim = 64},
    {.name = "Bf16In_512_1024", .dtype = DType::kBf16},
    {.name = "F32_512_16x64", .requests = 16, .tokens = 64},
    {.name = "F32_512_64x1", .requests = 64, .tokens = 1},
    {.name = "F32_512_1x1", .requests = 1, .tokens = 1},
};

// Requests for one layer, and room for their answers.
class ForwardWorkload {
 public:
  ForwardWorkload(const ForwardRow& row, InstructionSet instruction_set) : row_(row) {
    spec_ = DemoLayerSpec();
    spec_.rotary.dim = row.rotary_dim;
    tensors_ = *MakeSeededTensors(spec_, /*seed=*/20240301);
    absl::StatusOr<std::unique_ptr<const HostedLayer>> layer = HostedLayer::Create(spec_, tensors_, instruction_set);
    TRIAD_CHECK(layer.ok(), "a bench's layer is valid");
    layer_ = *std::move(layer);
    std::mt19937_64 random(20240229);
    std::normal_distribution<float> normal;
    for (int64_t r = 0; r < row.requests; ++r) {
      inputs_.push_back(*Tensor::Zeros(row.dtype, {1, row.tokens, spec_.model_dim}));
      outputs_.push_back(*Tensor::Zeros(row.dtype, {1, row.tokens, spec_.output_dim}));
      Tensor& input = inputs_.back();
      for (int64_t i = 0; i < input.byte_size(); i += ByteSize(row.dtype)) {
        StoreElement(input.data() + i, row.dtype, normal(random));
      }
      absl::StatusOr<ForwardProblem> problem = ValidateForward({.input = input.view()}, spec_, AttentionLimits());
      TRIAD_CHECK(problem.ok(), "a bench's request is legal");
      problems_.push_back(*std::move(problem));
    }
  }

  std::unique_ptr<ForwardBatch> NewBatch(const AttentionKernel& kernel) {
    std::vector<ForwardMember> members;
    for (size_t r = 0; r < problems_.size(); ++r) {
      members.push_back({.problem = &problems_[r], .reply = {.output = outputs_[r].data()}});
    }
    absl::StatusOr<std::unique_ptr<ForwardBatch>> batch = ForwardBatch::Create(*layer_, kernel, std::move(members));
    TRIAD_CHECK(batch.ok(), "a bench's batch fits into memory");
    return *std::move(batch);
  }

  double flop() const {
    double flop = 0;
    for (const ForwardProblem& problem : problems_) flop += FlopNeeded(problem, spec_);
    return flop;
  }

  // Whether the last request's first rows are what plain loops make of it.
  bool IsRight() const {
    LayerSequence sequence;
    const Tensor& input = inputs_.back();
    const int64_t bytes = ByteSize(row_.dtype);
    for (int64_t i = 0; i < input.element_count(); ++i) {
      sequence.input.push_back(LoadElement(input.data() + i * bytes, row_.dtype));
    }
    const LayerAnswer expected = ReferenceForward(spec_, tensors_, sequence);
    double worst = 0;
    for (size_t i = 0; i < expected.output.size(); ++i) {
      const std::byte* element = outputs_.back().data() + static_cast<int64_t>(i) * bytes;
      worst = std::max(worst, std::fabs(expected.output[i] - double{LoadElement(element, row_.dtype)}));
    }
    return worst <= (row_.dtype == DType::kF32 ? 1e-4 : 3e-2);
  }

 private:
  const ForwardRow& row_;
  LayerSpec spec_;
  LayerTensors tensors_;
  std::unique_ptr<const HostedLayer> layer_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  std::vector<ForwardProblem> problems_;
};

void MeasureBatch(ForwardWorkload& workload, const AttentionKernel& kernel, std::vector<Scratch>& scratches,
                  RowMeter& meter) {
  std::unique_ptr<ForwardBatch> batch;
  meter.Run({0.0}, [&](size_t, int) { batch = workload.NewBatch(kernel); });
  for (int stage = 0; stage < ForwardBatch::kStages; ++stage) {
    const auto which = static_cast<ForwardBatch::Stage>(stage);
    meter.Run(batch->item_costs(which), [&](size_t item, int thread) {
      Scratch& scratch = scratches[static_cast<size_t>(thread)];
      TRIAD_CHECK(batch->RunItem(which, static_cast<int64_t>(item), scratch).ok(), "the batch runs");
    });
  }
  meter.EndCall();
}

void Run(benchmark::State& state, const ForwardRow& row, const BenchOptions& options) {
  absl::StatusOr<std::unique_ptr<FastAttention>> kernel = FastAttention::Create(options.instruction_set);
  TRIAD_CHECK(kernel.ok(), "oneDNN has an engine");
  ForwardWorkload workload(row, options.instruction_set);
  std::vector<Scratch> scratches(static_cast<size_t>(options.threads));
  RowMeter meter(options, FmaLimit(options.threads));
  while (meter.WantsCall()) MeasureBatch(workload, **kernel, scratches, meter);
  meter.Report(workload.flop(), state);
  if (!workload.IsRight()) state.SkipWithError("the answer differs from the reference");
}

}  // namespace

void RegisterForwardRows(const BenchOptions& options) {
  for (const ForwardRow& row : kForwardRows) {
    RegisterRow(std::string("Forward_") + row.name,
                [&row, &options](benchmark::State& state) { Run(state, row, options); });
  }
}

}  // namespace triad
