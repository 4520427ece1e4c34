#include "core/attention/score_tile.h"

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "core/attention/score_modifiers.h"
#include "gtest/gtest.h"
#include "tests/support/extreme_values.h"

namespace triad {
namespace {

struct SoftmaxResult {
  std::vector<float> weights;
  float max = 0;
  float sum = 0;
};

SoftmaxResult SoftmaxOf(std::vector<float> scores, int32_t begin, int32_t end, float factor = 1) {
  const int64_t width = static_cast<int64_t>(scores.size());
  float max[16];
  float sum[16];
  SoftmaxRows({.scores = scores.data(),
               .stride = width,
               .rows = 1,
               .width = width,
               .begin = &begin,
               .end = &end,
               .factor = factor},
              {.max = max, .sum = sum});
  return {.weights = std::move(scores), .max = max[0], .sum = sum[0]};
}

std::vector<float> NormalScores(int64_t count, float gain) {
  std::mt19937_64 random(11);
  std::normal_distribution<float> normal(0, gain);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

TEST(SoftmaxRowsTest, MatchesDoublePrecisionForEveryRangeOfColumns) {
  const std::vector<float> scores = NormalScores(80, 20);
  for (int32_t begin = 0; begin < 80; begin += 3) {
    for (int32_t end = begin + 1; end <= 80; ++end) {
      const SoftmaxResult got = SoftmaxOf(scores, begin, end, /*factor=*/1.5f);
      double sum = 0;
      for (int32_t j = 0; j < 80; ++j) {
        const bool visible = j >= begin && j < end;
        const double expected = visible ? std::exp2(1.5 * (double{scores[j]} - got.max)) : 0;
        sum += expected;
        // 2e-7 of the polynomial, and the rounding of an exponent of up to 126.
        ASSERT_NEAR(got.weights[j], expected, expected * 1e-5) << begin << ".." << end << " column " << j;
        if (!visible) {
          ASSERT_EQ(got.weights[j], 0) << begin << ".." << end << " column " << j;
        }
      }
      ASSERT_NEAR(got.sum, sum, sum * 1e-6) << begin << ".." << end;
    }
  }
}

TEST(SoftmaxRowsTest, ARowThatSeesNothingHasNoWeightAndNoMaximum) {
  const SoftmaxResult got = SoftmaxOf(std::vector<float>(32, kNaN), 7, 7);
  EXPECT_EQ(got.weights, std::vector<float>(32, 0.0f));
  EXPECT_EQ(got.max, -kInfinity);
  EXPECT_EQ(got.sum, 0);
}

TEST(SoftmaxRowsTest, HiddenColumnsMayHoldAnything) {
  std::vector<float> scores(64, kNaN);
  for (int j = 5; j < 21; ++j) scores[j] = 1;
  scores[30] = kInfinity;
  const SoftmaxResult got = SoftmaxOf(scores, 5, 21);
  EXPECT_EQ(got.sum, 16);
  for (int j = 0; j < 64; ++j) EXPECT_EQ(got.weights[j], j >= 5 && j < 21 ? 1 : 0) << j;
}

TEST(SoftmaxRowsTest, AVisibleNanOrInfinityAnywhereMakesTheSumNan) {
  for (float bad : {kNaN, kInfinity}) {
    for (float others : {0.0f, -kInfinity}) {
      for (int j = 0; j < 48; ++j) {
        std::vector<float> scores(48, others);
        scores[j] = bad;
        ASSERT_TRUE(std::isnan(SoftmaxOf(scores, 0, 48).sum)) << bad << " among " << others << " at " << j;
      }
    }
  }
}

TEST(SoftmaxRowsTest, EqualScoresHaveWeightOneHoweverLarge) {
  const SoftmaxResult got = SoftmaxOf(std::vector<float>(32, 1.4e11f), 0, 32, /*factor=*/0.51f);
  EXPECT_EQ(got.sum, 32);
}

TEST(SoftmaxRowsTest, MinusInfinityHasWeightZeroAndTinyWeightsAreNeverDenormal) {
  std::vector<float> scores = {0, -kInfinity};
  for (float score = -120; scores.size() < 64; score -= 0.5f) scores.push_back(score);
  const SoftmaxResult got = SoftmaxOf(scores, 0, 64);
  EXPECT_EQ(got.weights[1], 0);
  for (float weight : got.weights) EXPECT_NE(std::fpclassify(weight), FP_SUBNORMAL) << weight;
}

TEST(MergeRowsTest, BlocksOfDifferentMaximaAddUpAndEmptyOnesChangeNothing) {
  // Row 0: nothing yet; row 1: the block is larger; row 2: the block saw nothing.
  std::vector<float> total(3 * 16, 8.0f);
  std::fill_n(total.begin(), 16, 0.0f);
  const std::vector<float> block(3 * 16, 2.0f);
  std::vector<float> total_max(16, 0.0f), total_sum(16, 4.0f), block_max(16, 3.0f), block_sum(16, 1.0f), factors(32);
  total_max[0] = -kInfinity;
  total_sum[0] = 0;
  block_max[2] = -kInfinity;
  block_sum[2] = 0;
  MergeRows({.total = total.data(),
             .block = block.data(),
             .rows = 3,
             .dims = 16,
             .total_state = {.max = total_max.data(), .sum = total_sum.data()},
             .block_state = {.max = block_max.data(), .sum = block_sum.data()},
             .factors = factors.data()});
  EXPECT_EQ(total[0], 2);
  EXPECT_EQ(total_sum[0], 1);
  EXPECT_EQ(total_max[0], 3);
  EXPECT_FLOAT_EQ(total[16], 8.0f / 8 + 2);  // 2^(0 - 3)
  EXPECT_FLOAT_EQ(total_sum[1], 4.0f / 8 + 1);
  EXPECT_EQ(total[32], 8);
  EXPECT_EQ(total_sum[2], 4);
  EXPECT_EQ(total_max[2], 0);
}

TEST(ModifyScoresTest, AppliesScaleCapAlibiBiasAndKeepInThatOrderForEveryCount) {
  for (int64_t count = 1; count <= 35; ++count) {
    std::vector<float> scores = NormalScores(count, 10);
    const std::vector<float> original = scores;
    const std::vector<float> bias = NormalScores(count, 1);
    std::vector<std::byte> keep(static_cast<size_t>(count), std::byte{200});
    keep[count / 2] = std::byte{0};
    ModifyScores({.scale = 0.5f,
                  .logit_softcap = 3,
                  .alibi_slope = 0.25f,
                  .first_distance = 7,
                  .bias = reinterpret_cast<const std::byte*>(bias.data()),
                  .keep = keep.data()},
                 scores.data(), count);
    for (int64_t j = 0; j < count; ++j) {
      const double expected =
          j == count / 2 ? -kInfinity : 3 * std::tanh(0.5 * original[j] / 3) - 0.25 * std::abs(7.0 - j) + bias[j];
      if (std::isinf(expected)) {
        ASSERT_EQ(scores[j], expected) << j << " of " << count;
      } else {
        ASSERT_NEAR(scores[j], expected, 3e-6) << j << " of " << count;  // a few roundings of numbers up to 12
      }
    }
  }
}

TEST(ModifyScoresTest, MinusInfinityInABiasOfAnyTypeHidesEvenNan) {
  const float f32[] = {-kInfinity, 0};
  const uint16_t bf16[] = {F32ToBf16(-kInfinity), 0};
  const uint16_t f16[] = {F32ToF16(-kInfinity), 0};
  const std::pair<DType, const void*> biases[] = {{DType::kF32, f32}, {DType::kBf16, bf16}, {DType::kF16, f16}};
  for (const auto& [dtype, bias] : biases) {
    float scores[] = {kNaN, 5};
    ModifyScores({.bias = static_cast<const std::byte*>(bias), .bias_dtype = dtype}, scores, /*count=*/2);
    EXPECT_EQ(scores[0], -kInfinity) << Name(dtype);
    EXPECT_EQ(scores[1], 5) << Name(dtype);
  }
}

TEST(ModifyScoresTest, TheCapIsExactToF32AndKeepsNan) {
  std::vector<float> scores = {0,  1e-6f, 0.3f,      0.62f,      0.63f, 2,  9.9f,
                               11, 1e30f, kInfinity, -kInfinity, -0.5f, -3, kNaN};
  const std::vector<float> original = scores;
  ModifyScores({.logit_softcap = 1}, scores.data(), static_cast<int64_t>(scores.size()));
  for (size_t j = 0; j + 1 < scores.size(); ++j) {
    const double expected = std::tanh(double{original[j]});
    EXPECT_NEAR(scores[j], expected, std::abs(expected) * 2.4e-7) << original[j];
  }
  EXPECT_TRUE(std::isnan(scores.back()));
}

}  // namespace
}  // namespace triad
