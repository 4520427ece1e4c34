#include "core/layer/rotary.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace triad {
namespace {

struct Turns {
  std::vector<float> cosines;
  std::vector<float> sines;
};

Turns TurnsAt(const RotaryTable& table, int64_t position) {
  Turns turns{.cosines = std::vector<float>(table.pairs()), .sines = std::vector<float>(table.pairs())};
  table.SinesAndCosines(position, turns.cosines.data(), turns.sines.data());
  return turns;
}

TEST(RotaryTableTest, TurnsByPositionTimesInverseFrequency) {
  // theta 10000, 4 dims: frequencies 1 and 0.01.
  const Turns turns = TurnsAt(RotaryTable({.dim = 4}), /*position=*/1);
  EXPECT_FLOAT_EQ(turns.cosines[0], 0.540302306f);
  EXPECT_FLOAT_EQ(turns.sines[0], 0.841470985f);
  EXPECT_FLOAT_EQ(turns.cosines[1], 0.99995f);
  EXPECT_FLOAT_EQ(turns.sines[1], 0.00999983333f);
}

TEST(RotaryTableTest, TurnsPositionZeroByNothing) {
  const Turns turns = TurnsAt(RotaryTable({.dim = 6}), /*position=*/0);
  EXPECT_EQ(turns.cosines, std::vector<float>(3, 1));
  EXPECT_EQ(turns.sines, std::vector<float>(3, 0));
}

TEST(RotaryTableTest, TakesListedFrequenciesAndTheAttentionFactor) {
  const RotaryTable table({.dim = 4, .inverse_frequencies = {0.25, 2}, .attention_factor = 1.5});
  const Turns turns = TurnsAt(table, /*position=*/3);
  EXPECT_FLOAT_EQ(turns.cosines[0], static_cast<float>(1.5 * std::cos(0.75)));
  EXPECT_FLOAT_EQ(turns.sines[1], static_cast<float>(1.5 * std::sin(6.0)));
}

// Across the tables' ends (256 and 262144), at a million, and at the bound.
TEST(RotaryTableTest, StaysExactAtEveryPosition) {
  const RotaryTable table({.dim = 8});
  for (int64_t position : {255, 256, 257, 65535, 262143, 262144, 1000000, 1000001, 50000000}) {
    const Turns turns = TurnsAt(table, position);
    for (int64_t pair = 0; pair < 4; ++pair) {
      const double angle = static_cast<double>(position) * std::pow(10000.0, -2.0 * static_cast<double>(pair) / 8);
      // An f64 angle of 5e7 is known to 7e-9; the rest is rounding to f32.
      EXPECT_NEAR(turns.cosines[pair], std::cos(angle), 8e-8) << position << ", pair " << pair;
      EXPECT_NEAR(turns.sines[pair], std::sin(angle), 8e-8) << position << ", pair " << pair;
    }
  }
}

TEST(RotaryTableTest, KeepsTheLengthOfAPairUpToTheBound) {
  const RotaryTable table({.dim = 4});
  for (int64_t position : {kMaxPositionOffset, 2 * kMaxPositionOffset}) {
    const Turns turns = TurnsAt(table, position);
    for (int64_t pair = 0; pair < 2; ++pair) {
      EXPECT_NEAR(std::hypot(turns.cosines[pair], turns.sines[pair]), 1, 2e-7);
    }
  }
}

TEST(RotaryTableTest, BringsPairsTogetherAndLeavesTheRestInPlace) {
  const RotaryTable halves({.dim = 6, .pairs = RotaryPairs::kHalves});
  const RotaryTable neighbours({.dim = 6, .pairs = RotaryPairs::kNeighbours});
  const std::vector<int64_t> expected = {0, 3, 1, 4, 2, 5, 6, 7};
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(halves.SourceDim(i), expected[i]);
    EXPECT_EQ(neighbours.SourceDim(i), i);
  }
}

TEST(RotatePairsTest, TurnsNeighbours) {
  const float cosines[] = {0, 0.5f};
  const float sines[] = {1, 2};
  float dims[] = {3, 5, 1, 4, 9};
  RotatePairs(cosines, sines, /*pairs=*/2, dims);
  EXPECT_EQ(std::vector<float>(dims, dims + 5), (std::vector<float>{-5, 3, -7.5f, 4, 9}));
}

}  // namespace
}  // namespace triad
