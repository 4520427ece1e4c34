// A few rows of one item (decode steps, with the heads that share a kv head), from packing their queries to storing
// them.
#pragma once

#include <cstdint>

#include "core/attention/item_rows.h"
#include "core/attention/row_group.h"
#include "core/attention/row_product.h"
#include "core/base/scratch.h"

namespace triad {

// All rows of `rows`, at most kFewRows. Borrows its arguments; `scratch` holds its buffers.
class FewRows final : public RowGroup {
 public:
  FewRows(ItemRows& rows, Scratch& scratch);

  KeyRange seen() const override { return seen_; }
  void AddBlock(KeyRange keys, const BlockRows& block, FetchList& ahead) override;
  void ListReads(KeyRange, FetchList&) const override {}  // a few queries; modifiers are read in order
  void Finish(float value_scale) override;

 private:
  void Merge(const RowSums& sums, const RowSums& total) const override;
  RowMaxAndSum SoftmaxOf(int64_t row, KeyRange keys, const BlockRows& block);

  ItemRows& rows_;
  const int64_t count_;
  const int64_t query_dims_;  // qk_head_dim rounded up to kPackedStep
  KeyRange seen_;
  float* const queries_;  // [rows, query_dims_]
  float* const scores_;   // [rows, kFusedKeyBlock]
  float* const merge_factors_;
  const RowSums block_;  // output [rows, output_dims]
};

}  // namespace triad
