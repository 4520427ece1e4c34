// A strip of rows that stand in the lanes of vectors, from packing their queries to storing them.
#pragma once

#include <cstdint>

#include "core/attention/fused_geometry.h"
#include "core/attention/item_rows.h"
#include "core/attention/lane_softmax.h"
#include "core/attention/row_group.h"
#include "core/base/scratch.h"

namespace triad {

// What the strips of an item use one after another.
struct StripBuffers {
  float* scores = nullptr;          // [kFusedKeyBlock, widest strip]
  float* rows_of_scores = nullptr;  // [widest strip, a block and a line]; null unless weights are asked for
  float* queries = nullptr;         // [widest strip, qk_head_dim rounded up to kPackedStep]: in rows
  int32_t* first_key = nullptr;     // [widest strip]: of a block, what a lane sees
  int32_t* end_key = nullptr;       // [widest strip]: past the last
  float* keep = nullptr;            // [widest strip] each, of LaneState
  float* add = nullptr;
  OutputPlace* places = nullptr;  // [widest strip]
};
StripBuffers StripBuffersFor(const ItemRows& rows, int64_t widest, Scratch& scratch);

// Borrows its arguments; `scratch` holds its own buffers.
class LaneStrip final : public RowGroup {
 public:
  // With `bf16_pairs`, products are those of pairs (lane_product.h), and so are the blocks it is given.
  LaneStrip(ItemRows& rows, const RowStrip& strip, bool bf16_pairs, const StripBuffers& buffers, Scratch& scratch);

  KeyRange seen() const override { return seen_; }
  void AddBlock(KeyRange keys, const BlockRows& block, FetchList& ahead) override;
  void ListReads(KeyRange keys, FetchList& list) const override;

 private:
  void KeepScores(const ScoreStrip& scores, KeyRange keys);
  void FindModifiers();
  void PackQueries();
  void HideKeys(const ScoreStrip& scores, int64_t first_key);
  StripSums StripSumsOf(const RowSums& sums) const;
  bool IsFinite(const RowSums& sums, int64_t row) const override;
  void FinishRows(bool held, const RowSums& sums, float value_scale) override;
  void Merge(const RowSums& sums, const RowSums& total) const override;

  ItemRows& rows_;
  const RowStrip strip_;
  const int64_t end_;  // past the last row that is one
  const StripBuffers buffers_;
  const bool bf16_pairs_;
  const int64_t query_dims_;       // qk_head_dim rounded up to kPackedStep, or half of that: pairs
  KeyRange seen_;                  // by some row
  KeyRange shared_;                // by all rows that see any
  float* const queries_;           // [query_dims_, width]
  bool has_queries_ = false;       // packed when the first block comes
  RowModifiers* const modifiers_;  // [width], from key 0 on; null: scores are as they are
};

}  // namespace triad
