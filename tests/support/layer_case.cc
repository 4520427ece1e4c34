#include "tests/support/layer_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "core/attention/fast_attention.h"
#include "core/base/check.h"
#include "core/base/cpu.h"
#include "core/layer/forward_batch.h"

namespace triad {
namespace {

ProjectionTensors NormalProjection(int64_t outputs, int64_t inputs, bool has_bias, std::mt19937_64& random) {
  ProjectionTensors tensors{.weight = *Tensor::Zeros(DType::kF32, {outputs, inputs}),
                            .bias = *Tensor::Zeros(DType::kF32, {has_bias ? outputs : 0})};
  std::normal_distribution<float> weight(0, 1 / std::sqrt(static_cast<float>(inputs)));
  std::normal_distribution<float> bias;
  auto* weights = reinterpret_cast<float*>(tensors.weight.data());
  for (int64_t i = 0; i < outputs * inputs; ++i) weights[i] = weight(random);
  auto* biases = reinterpret_cast<float*>(tensors.bias.data());
  for (int64_t i = 0; i < tensors.bias.element_count(); ++i) biases[i] = bias(random);
  return tensors;
}

std::unique_ptr<const HostedLayer> CreateLayer(const LayerSpec& spec, const LayerTensors& tensors) {
  absl::StatusOr<std::unique_ptr<const HostedLayer>> layer = HostedLayer::Create(spec, tensors, DetectInstructionSet());
  TRIAD_CHECK(layer.ok(), "a test's layer is valid");
  return *std::move(layer);
}

}  // namespace

LayerSpec WithDefaults(LayerSpec spec) {
  if (spec.output_dim == 0) spec.output_dim = spec.model_dim;
  if (spec.kv_heads == 0) spec.kv_heads = spec.heads;
  if (spec.qk_head_dim == 0) spec.qk_head_dim = spec.model_dim / spec.heads;
  if (spec.v_head_dim == 0) spec.v_head_dim = spec.qk_head_dim;
  if (!spec.is_cross() && spec.alignment == Alignment::kUnspecified) spec.alignment = Alignment::kTopLeft;
  return spec;
}

LayerTensors NormalTensors(const LayerSpec& spec, uint64_t seed, bool has_biases) {
  std::mt19937_64 random(seed);
  return {.query = NormalProjection(spec.query_width(), spec.model_dim, has_biases, random),
          .key = NormalProjection(spec.key_width(), spec.key_input_dim(), has_biases, random),
          .value = NormalProjection(spec.value_width(), spec.key_input_dim(), has_biases, random),
          .output = NormalProjection(spec.output_dim, spec.mixed_width(), has_biases, random)};
}

std::vector<float> NormalRows(DType dtype, int64_t rows, int64_t width, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(rows * width));
  for (float& value : values) {
    std::byte element[4];
    StoreElement(element, dtype, normal(random));
    value = LoadElement(element, dtype);
  }
  return values;
}

TestLayer::TestLayer(LayerSpec layer_spec, bool has_biases)
    : spec(WithDefaults(std::move(layer_spec))),
      tensors(NormalTensors(spec, /*seed=*/7, has_biases)),
      hosted(CreateLayer(spec, tensors)) {}

const AttentionKernel& MachineKernel() {
  static const std::unique_ptr<FastAttention> kernel = [] {
    absl::StatusOr<std::unique_ptr<FastAttention>> made = FastAttention::Create(DetectInstructionSet());
    TRIAD_CHECK(made.ok(), "oneDNN has an engine");
    return *std::move(made);
  }();
  return *kernel;
}

TestRequest::TestRequest(const LayerSpec& spec, DType dtype, std::vector<LayerSequence> all, int64_t padded_tokens)
    : sequences(std::move(all)), dtype_(dtype) {
  std::vector<std::vector<float>> inputs, contexts;
  request.lengths.emplace();
  if (spec.is_cross()) request.context_lengths.emplace();
  if (spec.rotary.dim > 0) request.position_offsets.emplace();
  for (const LayerSequence& sequence : sequences) {
    inputs.push_back(sequence.input);
    contexts.push_back(sequence.context);
    request.lengths->push_back(static_cast<int64_t>(sequence.input.size()) / spec.model_dim);
    if (spec.rotary.dim > 0) request.position_offsets->push_back(sequence.position_offset);
    if (!spec.is_cross()) continue;
    request.context_lengths->push_back(static_cast<int64_t>(sequence.context.size()) / spec.context_dim);
  }
  request.layout = padded_tokens > 0 ? Layout::kTokensHeads : Layout::kPacked;
  request.input = Store(inputs, spec.model_dim, padded_tokens);
  if (spec.is_cross()) request.context = Store(contexts, spec.context_dim, padded_tokens);
  request.return_lse = true;
  request.return_weights = true;
}

TensorView TestRequest::Store(const std::vector<std::vector<float>>& rows, int64_t width, int64_t padded_tokens) {
  std::vector<float> values;
  for (const std::vector<float>& sequence : rows) {
    values.insert(values.end(), sequence.begin(), sequence.end());
    const auto full = static_cast<size_t>(padded_tokens * width);
    if (full > sequence.size()) {
      values.resize(values.size() + full - sequence.size(), std::numeric_limits<float>::quiet_NaN());
    }
  }
  const int64_t bytes = ByteSize(dtype_);
  buffers_.push_back(std::make_unique<std::vector<std::byte>>(values.size() * static_cast<size_t>(bytes) + 1));
  std::byte* data = buffers_.back()->data() + 1;
  for (size_t i = 0; i < values.size(); ++i) StoreElement(data + static_cast<int64_t>(i) * bytes, dtype_, values[i]);
  TensorView view{.data = data, .dtype = dtype_};
  if (padded_tokens > 0) {
    view.shape = {static_cast<int64_t>(rows.size()), padded_tokens, width};
  } else {
    view.shape = {static_cast<int64_t>(values.size()) / width, width};
  }
  return view;
}

std::vector<std::byte> TestAnswer::RowBytes(int64_t row, int64_t rows) const {
  const int64_t row_bytes = static_cast<int64_t>(output_bytes.size()) / rows;
  return {output_bytes.begin() + row * row_bytes, output_bytes.begin() + (row + 1) * row_bytes};
}

std::vector<TestAnswer> RunBatch(const TestLayer& layer, absl::Span<const ForwardRequest> requests, bool backwards) {
  std::vector<ForwardProblem> problems;
  std::vector<TestAnswer> answers(requests.size());
  std::vector<ForwardMember> members;
  for (const ForwardRequest& request : requests) {
    absl::StatusOr<ForwardProblem> problem = ValidateForward(request, layer.spec, AttentionLimits());
    TRIAD_CHECK(problem.ok(), "a test's request is legal");
    problems.push_back(*std::move(problem));
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    const ForwardProblem& problem = problems[i];
    TestAnswer& answer = answers[i];
    const auto count_of = [](const Shape& shape) {
      return shape.empty() ? 0 : static_cast<size_t>(*TensorBytes(DType::kBool, shape));
    };
    answer.output_bytes.assign(count_of(problem.output_shape) * static_cast<size_t>(ByteSize(problem.dtype)),
                               std::byte{0xFF});
    // NaN, as the output: every element is to be written.
    answer.lse.assign(count_of(problem.attention.lse_shape), std::numeric_limits<float>::quiet_NaN());
    answer.weights.assign(count_of(problem.attention.weights_shape), std::numeric_limits<float>::quiet_NaN());
    members.push_back({.problem = &problem,
                       .reply = {.output = answer.output_bytes.data(),
                                 .lse = problem.attention.return_lse ? answer.lse.data() : nullptr,
                                 .weights = problem.attention.return_weights ? answer.weights.data() : nullptr}});
  }
  absl::StatusOr<std::unique_ptr<ForwardBatch>> batch =
      ForwardBatch::Create(*layer.hosted, MachineKernel(), std::move(members));
  TRIAD_CHECK(batch.ok(), "a test's batch fits into memory");
  Scratch scratch;
  for (int stage = 0; stage < ForwardBatch::kStages; ++stage) {
    const auto which = static_cast<ForwardBatch::Stage>(stage);
    const auto count = static_cast<int64_t>((*batch)->item_costs(which).size());
    for (int64_t item = 0; item < count; ++item) {
      const absl::Status status = (*batch)->RunItem(which, backwards ? count - 1 - item : item, scratch);
      TRIAD_CHECK(status.ok(), "oneDNN computes a test's batch");
    }
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    const int64_t bytes = ByteSize(problems[i].dtype);
    for (size_t at = 0; at < answers[i].output_bytes.size(); at += static_cast<size_t>(bytes)) {
      answers[i].output.push_back(LoadElement(&answers[i].output_bytes[at], problems[i].dtype));
    }
  }
  return answers;
}

TestAnswer RunAlone(const TestLayer& layer, const ForwardRequest& request) {
  return RunBatch(layer, absl::MakeConstSpan(&request, 1))[0];
}

}  // namespace triad
