#include "core/attention/tile_geometry.h"

#include <algorithm>
#include <iterator>

#include "gtest/gtest.h"

namespace triad {
namespace {

TEST(TileGeometryTest, SpansCoverTheirKeysStayInTheBlockAndHaveOneOfTheWidths) {
  for (int64_t begin = 0; begin < kKeyBlock; ++begin) {
    for (int64_t end = begin + 1; end <= kKeyBlock; ++end) {
      const ColumnSpan span = SpanOf(begin, end);
      ASSERT_LE(span.begin, begin);
      ASSERT_GE(span.begin + span.width, end);
      ASSERT_LE(span.begin + span.width, kKeyBlock);
      ASSERT_EQ(kWidths[WidthIndex(span.width)], span.width) << begin << ".." << end;
    }
  }
}

// A block is packed for all rows of an item; a tile of some of them multiplies only what was packed.
TEST(TileGeometryTest, TheSpanOfFewerKeysLiesInsideTheSpanOfMore) {
  const ColumnSpan outer = SpanOf(5, 150);
  const ColumnSpan narrow = SpanOf(70, 77);
  for (int64_t begin = 5; begin < 150; ++begin) {
    for (int64_t end = begin + 1; end <= 150; ++end) {
      const ColumnSpan inner = SpanOf(begin, end);
      ASSERT_GE(inner.begin, outer.begin);
      ASSERT_LE(inner.begin + inner.width, outer.begin + outer.width);
    }
  }
  for (int64_t end = 71; end <= 77; ++end) ASSERT_LE(SpanOf(70, end).width, narrow.width);
}

TEST(TileGeometryTest, RowClassesHoldTheirRows) {
  for (int64_t rows = 1; rows <= kTileRows; ++rows) {
    const int index = RowClassIndex(rows);
    ASSERT_GE(kRowClasses[index], rows);
    if (index > 0) {
      ASSERT_LT(kRowClasses[index - 1], rows);
    }
  }
}

TEST(TileGeometryTest, RowsFoldTheHeadsOfAKvHeadQueryMajor) {
  AttentionProblem problem;
  problem.heads = 6;
  problem.kv_heads = 2;
  const RowPlace place = PlaceOfRow(problem, {.kv_head = 1, .row_begin = 384}, /*row=*/2);
  EXPECT_EQ(place.query, 386 / 3);
  EXPECT_EQ(place.head, 3 + 386 % 3);
}

TEST(TileGeometryTest, ExecutedWorkIsThatOfTheTrimmedTiles) {
  AttentionProblem problem;
  problem.qk_head_dim = problem.v_head_dim = 64;
  problem.causal = true;
  problem.sequences.push_back({.q_len = 384, .query_length = 384, .kv_len = 384, .key_length = 384});
  // Rows 0..191 see 192 keys, all in block 0; rows 192..383 see block 0 and 128 keys of block 1.
  const double pairs = 192.0 * 192 + 192.0 * (256 + 128);
  EXPECT_EQ(FlopOf(problem, {.row_end = 384}), 2 * (64 + 64) * pairs);
  problem.sequences[0].query_length = 0;
  EXPECT_EQ(FlopOf(problem, {.row_end = 384}), 0);
}

TEST(TileGeometryTest, ItemsAreWholeTilesAndShorterTheMoreKeysTheyMeet) {
  AttentionProblem problem;
  problem.qk_head_dim = problem.v_head_dim = 64;
  EXPECT_EQ(RowsPerItem(problem, {.key_length = 0}, kTiledItems), kItemRows);
  EXPECT_EQ(RowsPerItem(problem, {.key_length = 2048}, kTiledItems), kItemRows);
  EXPECT_EQ(RowsPerItem(problem, {.key_length = 16384}, kTiledItems), 3 * kTileRows);  // 192 x 16384 x 256 is 0.8e9
  EXPECT_EQ(RowsPerItem(problem, {.key_length = int64_t{1} << 24}, kTiledItems), kTileRows);
}

}  // namespace
}  // namespace triad
