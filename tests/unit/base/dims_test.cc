#include "core/base/dims.h"

#include <gtest/gtest.h>

#include <limits>

namespace triad {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(DimsTest, ProductsAndSumsThatDoNotFitAreNone) {
  EXPECT_EQ(CheckedMul(int64_t{1} << 31, int64_t{1} << 31), int64_t{1} << 62);
  EXPECT_EQ(CheckedMul(int64_t{1} << 32, int64_t{1} << 31), std::nullopt);
  EXPECT_EQ(CheckedAdd(kMax, 0), kMax);
  EXPECT_EQ(CheckedAdd(kMax, 1), std::nullopt);
  EXPECT_EQ(CheckedProduct({}), 1);
  EXPECT_EQ(CheckedProduct({4096, 4097, 128}), int64_t{4096} * 4097 * 128);
}

TEST(DimsTest, AZeroDoesNotHideAProductThatDoesNotFit) {
  EXPECT_EQ(CheckedProduct({0, 5}), 0);
  EXPECT_EQ(CheckedProduct({0, kMax, 2}), std::nullopt);
  EXPECT_EQ(CheckedProduct({kMax, 2, 0}), std::nullopt);
}

TEST(DimsTest, RoundsUpToUnits) {
  EXPECT_EQ(CeilDiv(0, 4), 0);
  EXPECT_EQ(CeilDiv(1, 4), 1);
  EXPECT_EQ(CeilDiv(4, 4), 1);
  EXPECT_EQ(CeilDiv(kMax, 1), kMax);
  EXPECT_EQ(RoundUp(5, 4), 8);
  EXPECT_EQ(RoundUp(8, 4), 8);
}

}  // namespace
}  // namespace triad
