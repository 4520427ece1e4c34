// Whether a layer computes what it says, against a reference in plain loops.
#include "core/layer/forward_batch.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/layer_case.h"
#include "tests/support/layer_reference.h"

namespace triad {
namespace {

struct Kind {
  const char* name;
  LayerSpec spec;
  bool has_biases = true;
};

std::vector<Kind> Kinds() {
  return {
      {"Plain", {.model_dim = 64, .heads = 4}},
      {"NoBiases", {.model_dim = 64, .heads = 4}, /*has_biases=*/false},
      {"OddWidths", {.model_dim = 39, .heads = 3}},
      {"SeveralBlocks", {.model_dim = 520, .heads = 8}},
      {"GroupedHeads", {.model_dim = 64, .heads = 8, .kv_heads = 2}},
      {"OneKvHead", {.model_dim = 48, .heads = 6, .kv_heads = 1}},
      {"WidthsDiffer", {.model_dim = 40, .output_dim = 23, .heads = 4, .qk_head_dim = 7, .v_head_dim = 12}},
      {"Cross", {.model_dim = 48, .context_dim = 33, .heads = 4, .kv_heads = 2, .v_head_dim = 9}},
      {"CrossCausal",
       {.model_dim = 32, .context_dim = 20, .heads = 2, .causal = true, .alignment = Alignment::kBottomRight}},
      {"EveryScoreRule",
       {.model_dim = 64,
        .heads = 4,
        .scale = 0.2f,
        .logit_softcap = 3,
        .causal = true,
        .window = Window{.left = 7},
        .alibi = true,
        .sinks = {0.5f, -1, -std::numeric_limits<float>::infinity(), 2}}},
      {"RotaryHalves", {.model_dim = 64, .heads = 4, .rotary = {.dim = 16}}},
      {"RotaryNeighbours", {.model_dim = 64, .heads = 4, .rotary = {.dim = 16, .pairs = RotaryPairs::kNeighbours}}},
      {"RotaryPartOfOddHeads", {.model_dim = 62, .heads = 2, .kv_heads = 1, .rotary = {.dim = 22}}},
      {"RotaryOverBlocks",
       {.model_dim = 96,
        .heads = 12,
        .kv_heads = 4,
        .qk_head_dim = 57,
        .v_head_dim = 31,
        .causal = true,
        .rotary = {.dim = 56, .theta = 500000, .attention_factor = 1.1}}},
  };
}

std::vector<LayerSequence> SequencesOf(const LayerSpec& spec, DType dtype, std::vector<int64_t> lengths) {
  std::vector<LayerSequence> sequences;
  for (size_t s = 0; s < lengths.size(); ++s) {
    LayerSequence sequence{.input = NormalRows(dtype, lengths[s], spec.model_dim, 100 + s),
                           .position_offset = static_cast<int64_t>(s) * 1000};
    if (spec.is_cross()) sequence.context = NormalRows(dtype, lengths[s] + 5, spec.context_dim, 200 + s);
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

class ForwardTest : public testing::TestWithParam<Kind> {};

TEST_P(ForwardTest, MatchesTheReference) {
  const TestLayer layer(GetParam().spec, GetParam().has_biases);
  const TestRequest request(layer.spec, DType::kF32, SequencesOf(layer.spec, DType::kF32, {21}));
  const TestAnswer answer = RunAlone(layer, request.request);
  const LayerAnswer expected = ReferenceForward(layer.spec, layer.tensors, request.sequences[0]);
  ASSERT_EQ(answer.output.size(), expected.output.size());
  double error = 0, square = 0;
  for (size_t i = 0; i < answer.output.size(); ++i) {
    error += std::pow(answer.output[i] - expected.output[i], 2);
    square += std::pow(expected.output[i], 2);
  }
  EXPECT_LE(error, 1e-11 * square);
  ASSERT_EQ(answer.lse.size(), expected.lse.size());
  for (size_t i = 0; i < answer.lse.size(); ++i) {
    if (std::isinf(expected.lse[i])) {
      EXPECT_EQ(answer.lse[i], expected.lse[i]);
    } else {
      EXPECT_NEAR(answer.lse[i], expected.lse[i], 2e-5) << i;
    }
  }
  ASSERT_EQ(answer.weights.size(), expected.weights.size());
  for (size_t i = 0; i < answer.weights.size(); ++i) EXPECT_NEAR(answer.weights[i], expected.weights[i], 4e-6) << i;
}

double LargestError(const std::vector<double>& values, const std::vector<double>& expected) {
  double largest = 0;
  for (size_t i = 0; i < values.size(); ++i) largest = std::max(largest, std::fabs(values[i] - expected[i]));
  return largest;
}

TEST_P(ForwardTest, InBf16IsWithinTwiceTheNaiveError) {
  LayerSpec spec = GetParam().spec;
  spec.compute = DType::kBf16;
  const TestLayer layer(spec, GetParam().has_biases);
  // f32 rows are rounded to bf16 by the layer, bf16 rows are so already.
  for (DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
    const TestRequest request(layer.spec, dtype, SequencesOf(layer.spec, dtype, {21}));
    const TestAnswer answer = RunAlone(layer, request.request);
    const LayerAnswer exact = ReferenceForward(layer.spec, layer.tensors, request.sequences[0]);
    const LayerAnswer naive =
        ReferenceForward(layer.spec, layer.tensors, request.sequences[0], LayerArithmetic::kNaive);
    double largest = 0;
    for (double value : exact.output) largest = std::max(largest, std::fabs(value));
    const double ulp = dtype == DType::kF32 ? 0 : largest * (dtype == DType::kBf16 ? 0x1p-8 : 0x1p-11);
    const std::vector<double> output(answer.output.begin(), answer.output.end());
    EXPECT_LE(LargestError(output, exact.output), 2 * LargestError(naive.output, exact.output) + ulp) << Name(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ForwardTest, testing::ValuesIn(Kinds()),
                         [](const auto& tested) { return std::string(tested.param.name); });

TEST(ForwardMaskTest, KeepAndBiasApplyToTheRequestsOwnShape) {
  const TestLayer layer({.model_dim = 32, .heads = 2});
  TestRequest request(layer.spec, DType::kF32, SequencesOf(layer.spec, DType::kF32, {3, 5}), /*padded_tokens=*/6);
  // Each query keeps only the key it stands at.
  std::vector<std::byte> keep(36);
  for (int64_t i = 0; i < 6; ++i) keep[i * 6 + i] = std::byte{1};
  request.request.keep = TensorView{.data = keep.data(), .dtype = DType::kBool, .shape = {1, 1, 6, 6}};
  const TestAnswer answer = RunAlone(layer, request.request);
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t head = 0; head < 2; ++head) {
      for (int64_t i = 0; i < 6; ++i) {
        for (int64_t j = 0; j < 6; ++j) {
          const bool counts = i == j && i < (b == 0 ? 3 : 5);
          EXPECT_EQ(answer.weights[((b * 2 + head) * 6 + i) * 6 + j], counts ? 1 : 0);
        }
      }
    }
  }
}

TEST(ForwardMaskTest, RowsThatSeeNothingGiveTheOutputBias) {
  const TestLayer layer({.model_dim = 32, .heads = 2});
  TestRequest request(layer.spec, DType::kF32, SequencesOf(layer.spec, DType::kF32, {4}));
  const std::vector<std::byte> keep(4);
  request.request.keep = TensorView{.data = keep.data(), .dtype = DType::kBool, .shape = {1, 1, 4}};
  const TestAnswer answer = RunAlone(layer, request.request);
  const auto* bias = reinterpret_cast<const float*>(layer.tensors.output.bias.data());
  for (int64_t i = 0; i < 4 * 32; ++i) EXPECT_EQ(answer.output[i], bias[i % 32]);
}

TEST(ForwardEmptyTest, NoSequencesNoTokensAndEmptySequencesAreLegal) {
  for (bool has_biases : {true, false}) {
    const TestLayer layer({.model_dim = 32, .heads = 2}, has_biases);
    EXPECT_TRUE(RunAlone(layer, TestRequest(layer.spec, DType::kF32, {}).request).output.empty());
    ForwardRequest no_tokens;
    no_tokens.input.shape = {3, 0, 32};
    EXPECT_TRUE(RunAlone(layer, no_tokens).output.empty());
    const TestRequest padding(layer.spec, DType::kBf16, SequencesOf(layer.spec, DType::kBf16, {0, 2, 0}),
                              /*padded_tokens=*/3);
    const TestAnswer answer = RunAlone(layer, padding.request);
    const auto* bias = reinterpret_cast<const float*>(layer.tensors.output.bias.data());
    for (int64_t row : {0, 1, 2, 5, 6, 7, 8}) {
      for (int64_t i = 0; i < 32; ++i) {
        EXPECT_EQ(answer.output[row * 32 + i], has_biases ? Bf16ToF32(F32ToBf16(bias[i])) : 0);
      }
    }
  }
}

TEST(ForwardEmptyTest, ACrossLayerWithoutContextRowsGivesTheOutputBias) {
  const TestLayer layer({.model_dim = 16, .context_dim = 8, .heads = 2});
  const TestRequest request(layer.spec, DType::kF32, {{.input = NormalRows(DType::kF32, 3, 16, 1)}});
  const TestAnswer answer = RunAlone(layer, request.request);
  const auto* bias = reinterpret_cast<const float*>(layer.tensors.output.bias.data());
  for (int64_t i = 0; i < 3 * 16; ++i) EXPECT_EQ(answer.output[i], bias[i % 16]);
}

TEST(ForwardBatchTest, AnEmptyBatchHasNoItems) {
  const TestLayer layer({.model_dim = 16, .heads = 2});
  const auto batch = ForwardBatch::Create(*layer.hosted, MachineKernel(), {});
  ASSERT_TRUE(batch.ok());
  for (int stage = 0; stage < ForwardBatch::kStages; ++stage) {
    EXPECT_TRUE((*batch)->item_costs(static_cast<ForwardBatch::Stage>(stage)).empty());
  }
}

TEST(HostedLayerTest, CountsTheMemoryOfItsWeights) {
  const TestLayer layer({.model_dim = 64, .heads = 4});
  const int64_t floats = 4 * (64 * 64 + 64);
  EXPECT_GE(layer.hosted->weights_bytes(), floats * 4);
  EXPECT_LE(layer.hosted->weights_bytes(), floats * 8);
}

}  // namespace
}  // namespace triad
