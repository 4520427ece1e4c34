#include "core/attention/fused_geometry.h"

#include "gtest/gtest.h"

namespace triad {
namespace {

constexpr StripShape kAvx2Shape = {.unit = 8, .most_units = 3};

TEST(FusedGeometryTest, StripsCoverTheRowsOnceAndDifferByAtMostAUnit) {
  for (const StripShape& shape : {kAvx2Shape, StripShape{.unit = 16, .most_units = 3}, {.unit = 8, .most_units = 1}}) {
    for (int64_t rows = 1; rows <= kFusedItems.most; ++rows) {
      int64_t next = 0, narrowest = rows + shape.unit, widest = 0;
      for (const RowStrip& strip : StripsOf(rows, shape)) {
        ASSERT_EQ(strip.begin, next);
        ASSERT_EQ(strip.width % shape.unit, 0);
        ASSERT_LE(strip.width, shape.unit * shape.most_units);
        next += strip.width;
        narrowest = std::min(narrowest, strip.width);
        widest = std::max(widest, strip.width);
      }
      ASSERT_GE(next, rows);
      ASSERT_LT(next, rows + shape.unit);
      ASSERT_LE(widest - narrowest, shape.unit);
    }
  }
}

TEST(FusedGeometryTest, SixteenVectorsMakeSixStrips) {
  const std::vector<RowStrip> strips = StripsOf(128, kAvx2Shape);
  ASSERT_EQ(strips.size(), 6u);
  EXPECT_EQ(strips[0].width, 16);
  EXPECT_EQ(strips[1].width, 24);
}

TEST(FusedGeometryTest, ItemsAreShorterTheMoreKeysTheyMeet) {
  AttentionProblem problem;
  problem.qk_head_dim = problem.v_head_dim = 64;
  EXPECT_EQ(RowsPerItem(problem, {.key_length = 0}, kFusedItems), kFusedItems.most);
  EXPECT_EQ(RowsPerItem(problem, {.key_length = 16384}, kFusedItems), kFusedItems.most);
  EXPECT_EQ(RowsPerItem(problem, {.key_length = 65536}, kFusedItems), 144);  // 144 x 65536 x 256 is 2.4e9
  problem.qk_head_dim = problem.v_head_dim = 2048;
  EXPECT_EQ(RowsPerItem(problem, {.key_length = 1 << 20}, kFusedItems), kFusedItems.step);
}

TEST(FusedGeometryTest, ExecutedWorkIsThatOfTheStripsAndTheKeysTheySee) {
  AttentionProblem problem;
  problem.qk_head_dim = 64;
  problem.v_head_dim = 32;
  problem.causal = true;
  problem.sequences.push_back({.q_len = 30, .query_length = 30, .kv_len = 30, .key_length = 30});
  // Rows 0..15 see 16 keys, rows 16..29 (and 2 that are none) 30.
  EXPECT_EQ(FusedFlopOf(problem, {.row_end = 30}, kAvx2Shape), 2 * (64 + 32) * (16.0 * 16 + 16 * 30));
  // A decode step computes its own row alone.
  EXPECT_EQ(FusedFlopOf(problem, {.row_begin = 29, .row_end = 30}, kAvx2Shape), 2 * (64 + 32) * 30.0);
  problem.sequences[0].query_length = 0;
  EXPECT_EQ(FusedFlopOf(problem, {.row_end = 30}, kAvx2Shape), 0);
}

}  // namespace
}  // namespace triad
