#include "core/attention/lane_softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/attention/lane_product.h"
#include "core/base/cpu.h"
#include "core/base/scratch.h"
#include "gtest/gtest.h"

namespace triad {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A strip of one unit, whose lanes all hold the scores of one row.
class LaneSoftmaxTest : public testing::Test {
 protected:
  LaneSoftmaxTest() {
    state_ = {
        .max = Filled(width_, -kInf), .sum = Filled(width_, 0), .keep = Filled(width_, 0), .add = Filled(width_, 0)};
  }
  float* Filled(int64_t count, float value) {
    float* values = scratch_.Allocate<float>(count);
    std::fill_n(values, count, value);
    return values;
  }
  ScoreStrip StripOf(const std::vector<float>& row) {
    ScoreStrip strip{.keys = static_cast<int64_t>(row.size()), .width = width_, .factor = 0.5f};
    strip.scores = scratch_.Allocate<float>(strip.keys * width_);
    for (int64_t k = 0; k < strip.keys; ++k)
      std::fill_n(strip.scores + k * width_, width_, row[static_cast<size_t>(k)]);
    return strip;
  }

  Scratch scratch_;
  const int64_t width_ = StripShapeOf(DetectInstructionSet()).unit;
  LaneState state_;
};

TEST_F(LaneSoftmaxTest, WeightsArePowersBelowTheMaximumAndTheirSumsMerge) {
  const ScoreStrip first = StripOf({1, 3, -2, -kInf, 0, 1, 2, 3});
  SoftmaxStrip(first, state_);
  double sum = 0;
  for (float score : {1.f, 3.f, -2.f, 0.f, 1.f, 2.f, 3.f}) sum += std::exp2((score - 3) * 0.5);
  for (int64_t lane = 0; lane < width_; ++lane) {
    EXPECT_EQ(state_.max[lane], 3);
    EXPECT_NEAR(state_.sum[lane], sum, 1e-6);
    EXPECT_EQ(state_.keep[lane], 0);  // nothing before
    EXPECT_EQ(state_.add[lane], 1);
    EXPECT_NEAR(first.scores[lane], 0.5, 1e-7);
    EXPECT_EQ(first.scores[width_ + lane], 1);
    EXPECT_EQ(first.scores[3 * width_ + lane], 0);
  }
  const ScoreStrip second = StripOf(std::vector<float>(8, 7));
  SoftmaxStrip(second, state_);
  EXPECT_EQ(state_.max[0], 7);
  EXPECT_NEAR(state_.keep[0], 0.25, 1e-7);
  EXPECT_EQ(state_.add[0], 1);
  EXPECT_NEAR(state_.sum[0], sum / 4 + 8, 1e-6);
}

TEST_F(LaneSoftmaxTest, ABlockThatIsHiddenWholeChangesNothing) {
  SoftmaxStrip(StripOf({1, 2, 3, 4, 5, 6, 7, 8}), state_);
  const float max = state_.max[0], sum = state_.sum[0];
  const ScoreStrip hidden = StripOf(std::vector<float>(16, -kInf));
  SoftmaxStrip(hidden, state_);
  EXPECT_EQ(state_.max[0], max);
  EXPECT_EQ(state_.sum[0], sum);
  EXPECT_EQ(state_.keep[0], 1);
  EXPECT_EQ(state_.add[0], 0);
  for (int64_t i = 0; i < 16 * width_; ++i) EXPECT_EQ(hidden.scores[i], 0);
}

TEST_F(LaneSoftmaxTest, NaNAndPlusInfinitySpoilTheirLaneOnly) {
  for (float bad : {kNaN, kInf}) {
    for (int64_t key : {0, 5}) {
      for (float others : {1.f, -kInf}) {
        std::fill_n(state_.max, width_, -kInf);
        std::fill_n(state_.sum, width_, 0.0f);
        const ScoreStrip strip = StripOf(std::vector<float>(8, 1));
        for (int64_t k = 0; k < 8; ++k) strip.scores[k * width_ + 1] = others;
        strip.scores[key * width_ + 1] = bad;
        SoftmaxStrip(strip, state_);
        EXPECT_TRUE(std::isnan(state_.sum[1])) << bad << " at " << key << " among " << others;
        EXPECT_NE(state_.max[1], -kInf);
        EXPECT_EQ(state_.sum[0], 8);
        EXPECT_EQ(state_.sum[2], 8);
      }
    }
  }
}

TEST_F(LaneSoftmaxTest, WeightsTooSmallForANormalNumberAreZero) {
  const ScoreStrip strip = StripOf({0, -2 * 125.5f, -2 * 126.5f, -2 * 140.f, -1e30f, 0, 0, 0});
  SoftmaxStrip(strip, state_);
  EXPECT_GT(strip.scores[width_], 0);
  for (int64_t k : {2, 3, 4}) EXPECT_EQ(strip.scores[k * width_], 0) << k;
}

TEST_F(LaneSoftmaxTest, HiddenKeysAreThoseOutsideALanesRangeAndWithinTheLimits) {
  const ScoreStrip strip = StripOf(std::vector<float>(16, 2));
  int32_t* begin = scratch_.Allocate<int32_t>(width_);
  int32_t* end = scratch_.Allocate<int32_t>(width_);
  for (int64_t lane = 0; lane < width_; ++lane) {
    begin[lane] = static_cast<int32_t>(lane % 3);
    end[lane] = static_cast<int32_t>(9 + lane % 5);
  }
  HideScores(strip, {.begin = begin, .end = end, .first = 1, .last = 12});
  for (int64_t key = 0; key < 16; ++key) {
    for (int64_t lane = 0; lane < width_; ++lane) {
      const bool is_hidden = key >= 1 && key < 12 && (key < begin[lane] || key >= end[lane]);
      EXPECT_EQ(strip.scores[key * width_ + lane], is_hidden ? -kInf : 2) << "key " << key << ", lane " << lane;
    }
  }
}

}  // namespace
}  // namespace triad
