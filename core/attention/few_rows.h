// A few rows of one item (decode steps, with the heads that share a kv head), from packing their queries to storing
// them.
#pragma once

#include <cstdint>

#include "core/attention/item_rows.h"
#include "core/attention/row_group.h"
#include "core/attention/row_product.h"
#include "core/attention/score_tile.h"
#include "core/base/scratch.h"

namespace triad {

// All rows of `rows`, at most kFewRows. Borrows its arguments; `scratch` holds its buffers.
class FewRows final : public RowGroup {
 public:
  FewRows(ItemRows& rows, Scratch& scratch);

  KeyRange seen() const override { return seen_; }
  void Start() override;
  void AddBlock(KeyRange keys, const BlockRows& block, FetchList& ahead) override;
  void ListReads(KeyRange, FetchList&) const override {}  // a few queries; modifiers are read in order
  void EndChunk() override;
  int64_t chunk_floats() const override { return count_ * (output_dims_ + 2); }
  void StoreChunk(float* result) const override;
  void AddChunk(const float* result) override;
  bool IsFinite() const override;
  void Finish(float value_scale) override;

 private:
  // What the rows have added up to over some keys.
  struct Sums {
    float* output = nullptr;  // [rows, output_dims_]
    RowState state;
  };
  Sums NewSums(Scratch& scratch) const;
  void Clear(const Sums& sums) const;
  void Merge(const Sums& sums, const Sums& total) const;
  RowMaxAndSum SoftmaxOf(int64_t row, KeyRange keys, const BlockRows& block);

  ItemRows& rows_;
  Scratch& scratch_;
  const int64_t count_;
  const int64_t query_dims_;  // qk_head_dim and v_head_dim, rounded up to kPackedStep
  const int64_t output_dims_;
  KeyRange seen_;
  float* const queries_;  // [rows, query_dims_]
  float* const scores_;   // [rows, kFusedKeyBlock]
  float* const merge_factors_;
  const Sums block_;
  const Sums chunk_;
  Sums total_;  // of the chunks that have ended; made when the first does
};

}  // namespace triad
