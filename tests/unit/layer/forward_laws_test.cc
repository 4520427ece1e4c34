// Equal bytes: what a request's answer must not depend on.
#include <deque>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/layer/forward_batch.h"
#include "gtest/gtest.h"
#include "tests/support/layer_case.h"

namespace triad {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

LayerSequence SequenceOf(const LayerSpec& spec, DType dtype, int64_t tokens, uint64_t seed) {
  LayerSequence sequence{.input = NormalRows(dtype, tokens, spec.model_dim, seed),
                         .position_offset = static_cast<int64_t>(seed % 5) * 777};
  if (spec.is_cross()) sequence.context = NormalRows(dtype, tokens + 3, spec.context_dim, seed + 1000);
  return sequence;
}

void ExpectSame(const TestAnswer& answer, const TestAnswer& expected, const std::string& what) {
  EXPECT_EQ(answer.output_bytes, expected.output_bytes) << what;
  EXPECT_EQ(answer.lse, expected.lse) << what;
  EXPECT_EQ(answer.weights, expected.weights) << what;
}

std::vector<ForwardRequest> RequestsOf(const std::deque<TestRequest>& requests) {
  std::vector<ForwardRequest> all;
  for (const TestRequest& request : requests) all.push_back(request.request);
  return all;
}

class ForwardLawsTest : public testing::TestWithParam<DType> {
 protected:
  std::vector<LayerSpec> Specs() const {
    return {{.model_dim = 72, .heads = 6, .kv_heads = 2, .compute = GetParam(), .causal = true, .rotary = {.dim = 8}},
            {.model_dim = 512, .heads = 8, .compute = GetParam()},
            {.model_dim = 40, .context_dim = 56, .output_dim = 30, .heads = 4, .compute = GetParam()}};
  }
};

TEST_P(ForwardLawsTest, InABatchEqualsAloneForRaggedLengthsOfEveryType) {
  for (const LayerSpec& spec : Specs()) {
    const TestLayer layer(spec);
    std::deque<TestRequest> requests;
    uint64_t seed = 1;
    for (DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
      for (int64_t tokens : {1, 2, 15, 16, 17, 70, 193}) {
        requests.emplace_back(layer.spec, dtype, std::vector{SequenceOf(layer.spec, dtype, tokens, ++seed)});
      }
    }
    const std::vector<TestAnswer> together = RunBatch(layer, RequestsOf(requests));
    const std::vector<TestAnswer> backwards = RunBatch(layer, RequestsOf(requests), /*backwards=*/true);
    for (size_t i = 0; i < requests.size(); ++i) {
      const TestAnswer alone = RunAlone(layer, requests[i].request);
      ExpectSame(together[i], alone, "request " + std::to_string(i));
      ExpectSame(backwards[i], alone, "backwards, request " + std::to_string(i));
    }
  }
}

TEST_P(ForwardLawsTest, NaNOfOthersDoesNotShow) {
  for (const LayerSpec& spec : Specs()) {
    const TestLayer layer(spec);
    std::deque<TestRequest> requests;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      LayerSequence sequence = SequenceOf(layer.spec, DType::kF32, /*tokens=*/static_cast<int64_t>(7 * seed), seed);
      if (seed % 2 == 0) sequence.input.assign(sequence.input.size(), kNaN);
      if (seed % 2 == 0) sequence.context.assign(sequence.context.size(), kNaN);
      requests.emplace_back(layer.spec, DType::kF32, std::vector{std::move(sequence)});
    }
    const std::vector<TestAnswer> together = RunBatch(layer, RequestsOf(requests));
    for (size_t i = 0; i < requests.size(); i += 2) {
      ExpectSame(together[i], RunAlone(layer, requests[i].request), "request " + std::to_string(i));
    }
  }
}

// Padding holds NaN (TestRequest fills it so), and one request's sequences equal requests of their own.
TEST_P(ForwardLawsTest, PackedEqualsPaddedEqualsOneByOne) {
  for (const LayerSpec& spec : Specs()) {
    const TestLayer layer(spec);
    const std::vector<int64_t> lengths = {5, 0, 31, 18};
    std::vector<LayerSequence> sequences;
    for (size_t s = 0; s < lengths.size(); ++s) {
      sequences.push_back(SequenceOf(layer.spec, DType::kF32, lengths[s], s + 1));
    }
    const TestAnswer packed = RunAlone(layer, TestRequest(layer.spec, DType::kF32, sequences).request);
    const TestAnswer padded = RunAlone(layer, TestRequest(layer.spec, DType::kF32, sequences, 40).request);
    int64_t packed_row = 0;
    for (size_t s = 0; s < lengths.size(); ++s) {
      const TestAnswer alone = RunAlone(layer, TestRequest(layer.spec, DType::kF32, {sequences[s]}).request);
      for (int64_t i = 0; i < lengths[s]; ++i, ++packed_row) {
        const std::vector<std::byte> row = alone.RowBytes(i, lengths[s]);
        EXPECT_EQ(packed.RowBytes(packed_row, 54), row) << "sequence " << s << ", row " << i;
        EXPECT_EQ(padded.RowBytes(static_cast<int64_t>(s) * 40 + i, 160), row) << "sequence " << s << ", row " << i;
      }
    }
  }
}

// A layer of which every token sees only itself: its score is made of its own q and k, turned by its position.
TEST_P(ForwardLawsTest, ARowEqualsAOneRowCallAtItsPosition) {
  for (RotaryPairs pairs : {RotaryPairs::kHalves, RotaryPairs::kNeighbours}) {
    const TestLayer layer({.model_dim = 64,
                           .heads = 4,
                           .kv_heads = 2,
                           .compute = GetParam(),
                           .causal = true,
                           .window = Window{.left = 0},
                           .rotary = {.dim = 10, .pairs = pairs}});
    for (int64_t offset : {int64_t{0}, int64_t{250}, int64_t{262100}, int64_t{1} << 40}) {
      LayerSequence sequence{.input = NormalRows(DType::kF32, 100, 64, 3), .position_offset = offset};
      const TestAnswer whole = RunAlone(layer, TestRequest(layer.spec, DType::kF32, {sequence}).request);
      for (int64_t n : {0, 1, 17, 63, 99}) {
        const LayerSequence row{.input = {sequence.input.begin() + n * 64, sequence.input.begin() + (n + 1) * 64},
                                .position_offset = offset + n};
        if (row.position_offset > int64_t{1} << 40) continue;
        const TestAnswer alone = RunAlone(layer, TestRequest(layer.spec, DType::kF32, {row}).request);
        EXPECT_EQ(whole.RowBytes(n, 100), alone.output_bytes) << "offset " << offset << ", row " << n;
        for (int64_t head = 0; head < 4; ++head) EXPECT_EQ(whole.lse[head * 100 + n], alone.lse[head]);
      }
    }
  }
}

TEST_P(ForwardLawsTest, AnOffsetShowsOnlyWhereTwoPositionsMeet) {
  const TestLayer layer({.model_dim = 32, .heads = 2, .compute = GetParam(), .rotary = {.dim = 16}});
  LayerSequence sequence{.input = NormalRows(DType::kF32, 1, 32, 4), .position_offset = 5};
  const TestAnswer here = RunAlone(layer, TestRequest(layer.spec, DType::kF32, {sequence}).request);
  sequence.position_offset = 123456;
  const TestAnswer there = RunAlone(layer, TestRequest(layer.spec, DType::kF32, {sequence}).request);
  EXPECT_EQ(here.output_bytes, there.output_bytes);  // one key: its weight is 1 whatever its score
  const float bound = GetParam() == DType::kF32 ? 1e-4f : 0.1f;
  EXPECT_NEAR(here.lse[0], there.lse[0], bound);  // both were turned alike
}

INSTANTIATE_TEST_SUITE_P(ComputeTypes, ForwardLawsTest, testing::Values(DType::kF32, DType::kBf16),
                         [](const auto& tested) { return std::string(Name(tested.param)); });

}  // namespace
}  // namespace triad
