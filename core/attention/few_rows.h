// A few rows of one item (decode steps, with the heads that share a kv head), or of each of its kv heads, from packing
// their queries to storing them.
#pragma once

#include <cstdint>

#include "core/attention/item_rows.h"
#include "core/attention/row_group.h"
#include "core/attention/row_product.h"
#include "core/base/scratch.h"

namespace triad {

// All rows of `rows`, at most kFewRows of each kv head. Borrows its arguments; `scratch` holds its buffers.
class FewRows final : public RowGroup {
 public:
  // Blocks have at most `keys_at_once` keys. With `bf16_pairs`, products are those of pairs (lane_product.h).
  FewRows(ItemRows& rows, int64_t keys_at_once, bool bf16_pairs, Scratch& scratch);

  KeyRange seen() const override { return seen_; }
  void AddBlock(KeyRange keys, const BlockRows& block, FetchList&) override;  // fetches for itself
  void ListReads(KeyRange, FetchList&) const override {}  // a few queries; modifiers are read in order
  // Each block by itself, so that a part may be less than a chunk.
  int64_t part_floats(int64_t blocks) const override { return blocks * sums_floats(); }
  void BeginPart(float* result) override { next_block_ = result; }
  void EndPart() override { next_block_ = nullptr; }
  void AddPart(const float* result, int64_t blocks) override;

 private:
  bool IsFinite(const RowSums& sums, int64_t row) const override;
  void FinishRows(bool held, const RowSums& sums, float value_scale) override;
  void Merge(const RowSums& sums, const RowSums& total) const override;
  // What is fetched while `rows` are multiplied: `rows` but the first, which have been, and the first of those that
  // come next. Null for one row of one head: the products read in order, and the hardware fetches.
  FetchList* AheadOf(const SourceRows& rows, const SourceRows& next);
  HeadsTogether HeadsOf(const HeadRows& rows) const;
  // `scores` [rows, score_stride_] are those of `keys`, `next` the values that come next.
  void AddValues(KeyRange keys, const BlockRows& block, const SourceRows& next, float* scores);
  RowMaxAndSum SoftmaxOf(int64_t row, KeyRange keys, const BlockRows& block, float* scores);

  ItemRows& rows_;
  const int64_t count_;  // of all kv heads
  const bool bf16_pairs_;
  KeyRange seen_;
  const int64_t query_dims_;  // qk_head_dim rounded up to kPackedStep, or half of that: pairs
  float* const queries_;      // [rows, query_dims_]
  const int64_t score_stride_;
  float* const scores_;  // [rows, score_stride_]
  FetchList ahead_;
  float* const merge_factors_;
  const RowSums block_;          // output [rows, output_dims]
  float* next_block_ = nullptr;  // where a part's next block goes; null: to the chunk
};

}  // namespace triad
