#include "core/attention/fused_geometry.h"

#include <utility>
#include <vector>

#include "core/attention/row_product.h"
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
  EXPECT_EQ(RowsPerItem(problem, {.key_length = 1024}, kFusedItems), kFusedItems.most);
  EXPECT_EQ(RowsPerItem(problem, {.key_length = 2048}, kFusedItems), 192);  // 192 x 2048 x 256 is 1.0e8
  EXPECT_EQ(RowsPerItem(problem, {.key_length = 65536}, kFusedItems), 96);  // 96 x 4096 x 256 is 1.0e8
  problem.qk_head_dim = problem.v_head_dim = 2048;
  EXPECT_EQ(RowsPerItem(problem, {.key_length = 1 << 20}, kFusedItems), kFusedItems.step);
}

TEST(FusedGeometryTest, ItemsHaveTwiceTheWorkWhereTokensLieApartAndKeysAreOneChunk) {
  AttentionProblem problem;
  problem.qk_head_dim = problem.v_head_dim = 64;
  problem.sequences = {{.key_length = 2048}, {.key_length = kFusedKeyChunk}};
  problem.key.token_stride = 64;
  EXPECT_EQ(FusedItemsOf(problem).flop, kFusedItems.flop);
  problem.key.token_stride = 8 * 64;
  EXPECT_EQ(FusedItemsOf(problem).flop, kStridedItemFlop);
  EXPECT_EQ(RowsPerItem(problem, problem.sequences[0], FusedItemsOf(problem)), 384);
  problem.sequences[1].key_length = kFusedKeyChunk + 1;
  EXPECT_EQ(FusedItemsOf(problem).flop, kFusedItems.flop);
}

TEST(FusedGeometryTest, ItemsFollowEachOtherByHeadsUnlessTokensLieApart) {
  AttentionProblem problem;
  problem.heads = problem.kv_heads = 2;
  problem.qk_head_dim = problem.v_head_dim = 64;
  problem.sequences = {{.q_len = 1000, .query_length = 1000, .key_length = kFusedKeyChunk}};
  const auto order = [&](int64_t token_stride) {
    problem.key.token_stride = token_stride;
    std::vector<std::pair<int64_t, bool>> items;  // kv head, and whether it is the first rows'
    for (const WorkItem& item : PlanItems(problem, FusedItemsOf(problem), [](const WorkItem&) { return 1.0; })) {
      if (item.row_begin == 0 || item.row_end == 1000) items.emplace_back(item.kv_head, item.row_begin == 0);
    }
    return items;
  };
  using Items = std::vector<std::pair<int64_t, bool>>;
  EXPECT_EQ(order(64), (Items{{0, true}, {0, false}, {1, true}, {1, false}}));
  EXPECT_EQ(order(128), (Items{{0, true}, {1, true}, {0, false}, {1, false}}));
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

TEST(FusedGeometryTest, MuchWorkIsSplitAtFixedKeysIntoEqualParts) {
  AttentionProblem problem;
  problem.qk_head_dim = problem.v_head_dim = 64;
  problem.causal = true;
  problem.window_left = 20000;
  problem.sequences = {{.q_len = 2, .query_length = 2, .kv_len = 40000, .key_length = 40000, .query_shift = 29000}};
  WorkItem whole{.row_end = 2};
  whole.flop = FusedFlopOf(problem, whole, kAvx2Shape);
  std::vector<WorkItem> items;
  SplitItem(problem, whole, items);  // keys [9000, 29002)
  ASSERT_EQ(items.size(), 11u);
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(items[i].split, items[0].split);
    EXPECT_EQ(items[i].part, static_cast<int64_t>(i) + 4);  // of 2048 keys
    EXPECT_DOUBLE_EQ(items[i].flop, whole.flop / 11);
  }
  EXPECT_EQ(items[0].split->first_part(), 4);
  EXPECT_EQ(items[0].split->end_part(), 15);
}

TEST(FusedGeometryTest, FewRowsOfManyHeadsAreSplitIntoPartsOfAChunk) {
  AttentionProblem problem;
  problem.qk_head_dim = problem.v_head_dim = 64;
  problem.sequences = {{.q_len = 1, .query_length = 1, .kv_len = 5000, .key_length = 5000}};
  WorkItem whole{.kv_heads = 8, .row_end = 1};
  whole.flop = 8 * FusedFlopOf(problem, whole, kAvx2Shape);
  std::vector<WorkItem> items;
  SplitItem(problem, whole, items);
  ASSERT_EQ(items.size(), 20u);  // of 256 keys: 8 x 128 x 4 bytes of each are 1 MiB
  EXPECT_EQ(items[19].split->KeysOf(items[19].part).begin, 19 * 256);
  EXPECT_EQ(items[19].kv_heads, 8);
  problem.dtype = DType::kBf16;
  items.clear();
  SplitItem(problem, whole, items);
  EXPECT_EQ(items.size(), 10u);
}

TEST(FusedGeometryTest, FewRowsOfTheNextHeadJoinWhereHeadsLieTogether) {
  AttentionProblem problem;
  problem.qk_head_dim = 64;
  problem.v_head_dim = 32;
  problem.key = {.token_stride = 4 * 64, .head_stride = 64};
  problem.value = {.token_stride = 4 * 32, .head_stride = 32};
  const WorkItem item{.kv_head = 1, .kv_heads = 2, .row_end = kFewRows};
  WorkItem next{.kv_head = 3, .row_end = kFewRows};
  EXPECT_TRUE(ReadsBeside(problem, item, next));
  next.kv_head = 2;
  EXPECT_FALSE(ReadsBeside(problem, item, next)) << "not the next";
  next = {.sequence = 1, .kv_head = 3, .row_end = kFewRows};
  EXPECT_FALSE(ReadsBeside(problem, item, next)) << "of another sequence";
  EXPECT_FALSE(ReadsBeside(problem, {.kv_heads = 3, .row_end = 5}, {.kv_head = 3, .row_end = 5})) << "more rows";
  EXPECT_FALSE(ReadsBeside(problem, {.kv_heads = kMostHeadsTogether, .row_end = 1},
                           {.kv_head = kMostHeadsTogether, .row_end = 1}));
  next = {.kv_head = 3, .row_end = kFewRows};
  problem.value = {.token_stride = 32, .head_stride = 4000 * 32};
  EXPECT_FALSE(ReadsBeside(problem, item, next)) << "heads lie apart";
}

TEST(FusedGeometryTest, LittleWorkOneChunkAndNothingSeenAreNotSplit) {
  AttentionProblem problem;
  problem.qk_head_dim = problem.v_head_dim = 16;
  const auto parts = [&](int64_t rows, int64_t keys) {
    problem.sequences = {{.q_len = rows, .query_length = rows, .kv_len = keys, .key_length = keys}};
    WorkItem item{.row_end = rows};
    item.flop = FusedFlopOf(problem, item, kAvx2Shape);
    std::vector<WorkItem> items;
    SplitItem(problem, item, items);
    return items;
  };
  for (const int64_t rows : {1, 16}) {  // 16 x 7813 x 64 is 8e6
    EXPECT_EQ(parts(rows, 7800).size(), 1u);
    EXPECT_EQ(parts(rows, 7900).size(), 2u);
  }
  EXPECT_EQ(parts(96, kFusedKeyChunk).size(), 1u);
  EXPECT_EQ(parts(96, kFusedKeyChunk + 1).size(), 2u);
  EXPECT_EQ(parts(96, 0).size(), 1u);
  EXPECT_EQ(parts(96, 0)[0].split, nullptr);
}

}  // namespace
}  // namespace triad
