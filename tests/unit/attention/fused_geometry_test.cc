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

TEST(FusedGeometryTest, FewRowsOfManyKeysAreSplitAtFixedKeys) {
  AttentionProblem problem;
  problem.qk_head_dim = problem.v_head_dim = 64;
  problem.causal = true;
  problem.window_left = 5000;
  problem.sequences = {{.q_len = 2, .query_length = 2, .kv_len = 20000, .key_length = 20000, .query_shift = 14000}};
  WorkItem whole{.row_end = 2};
  whole.flop = FusedFlopOf(problem, whole, kAvx2Shape);
  const std::vector<WorkItem> items = SplitItem(problem, whole, kAvx2Shape);  // keys [9000, 14002)
  ASSERT_EQ(items.size(), 2u);
  double flop = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(items[i].split, items[0].split);
    EXPECT_EQ(items[i].chunk, static_cast<int64_t>(i) + 2);  // of 4096 keys
    flop += items[i].flop;
  }
  EXPECT_DOUBLE_EQ(flop, whole.flop);
  EXPECT_EQ(items[0].split->first_chunk(), 2);
  EXPECT_EQ(items[0].split->end_chunk(), 4);
  EXPECT_EQ(items[0].split->bytes(), 2 * ChunkFloats(problem, /*rows=*/2, kAvx2Shape) * 4);
}

TEST(FusedGeometryTest, ManyRowsOneChunkOrNothingSeenAreNotSplit) {
  AttentionProblem problem;
  problem.sequences = {{.q_len = 49, .query_length = 49, .kv_len = 20000, .key_length = 20000}};
  const auto parts = [&](int64_t rows) { return SplitItem(problem, {.row_end = rows}, kAvx2Shape); };
  EXPECT_EQ(parts(kMostSplitRows).size(), 5u);
  EXPECT_EQ(parts(kMostSplitRows + 1).size(), 1u);
  EXPECT_EQ(parts(kMostSplitRows + 1)[0].split, nullptr);
  for (int64_t length : {int64_t{0}, int64_t{1}, kFusedKeyChunk}) {
    problem.sequences[0].key_length = length;
    EXPECT_EQ(parts(1).size(), 1u) << length;
  }
}

}  // namespace
}  // namespace triad
