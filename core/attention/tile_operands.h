// The packed operands of one item's tiles: its queries, and the keys and values of one block at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/attention/attention_kernel.h"
#include "core/attention/pack_tile.h"
#include "core/attention/tile_geometry.h"
#include "core/base/scratch.h"

namespace triad {

// Elements are f32, or bf16 when the layout multiplies bf16 and the problem is bf16. Rows and dims are padded with
// zeros. Borrows problem and item; its buffers are in the scratch it is given, valid until that is Reset.
class TileOperands {
 public:
  TileOperands(const TileLayout& layout, const AttentionProblem& problem, const WorkItem& item, Scratch& scratch);

  // Packs the item's queries, negated when the scale is negative. Rows past query_length are not read; they become
  // zeros.
  void PackQueries();

  // Packs keys and values [keys.begin, keys.end) of the block whose first key is `first_key`, at their columns. Other
  // columns of `span` become zeros and are not read. Values that are not finite become 0, the rest is multiplied by
  // `value_scale`.
  ValueTraits PackBlock(int64_t first_key, ColumnSpan span, KeyRange keys, float value_scale);

  bool bf16() const { return bf16_; }
  int64_t qk_dims() const { return qk_dims_; }
  int64_t v_dims() const { return v_dims_; }
  // [rows, qk_dims] from row `row` of the item on.
  const void* queries(int64_t row) const { return queries_ + row * qk_dims_ * element_bytes_; }
  // The packed keys from `column` on: [qk_dims, keys_stride] when keys_transposed, else [columns, keys_stride].
  const void* keys(int64_t column) const { return keys_ + column * (keys_transposed_ ? 1 : qk_dims_) * element_bytes_; }
  bool keys_transposed() const { return keys_transposed_; }
  int64_t keys_stride() const { return keys_stride_; }
  // [columns, v_dims] from `column` on.
  const void* values(int64_t column) const { return values_ + column * v_dims_ * element_bytes_; }

 private:
  SourceRows SourceOf(const HeadRows& rows, int64_t begin, int64_t dims) const;
  void PackElements(const SourceRows& rows, std::byte* packed) const;
  void PackQueryRows(int64_t first, int64_t stride, int64_t count, std::byte* packed) const;
  void PackColumns(SourceRows source, int64_t first, int64_t count, KeyRange keys, std::byte* packed) const;

  const AttentionProblem& problem_;
  const Sequence& sequence_;
  const WorkItem& item_;
  const bool bf16_;
  const int64_t element_bytes_;
  const int64_t qk_dims_;
  const int64_t v_dims_;
  const bool keys_transposed_;
  const int64_t keys_stride_;
  const int64_t padded_rows_;
  std::byte* const queries_;        // [padded_rows, qk_dims]
  std::byte* const keys_;           // [qk_dims, keys_stride] or [kKeyBlock, qk_dims]
  std::byte* const values_;         // [kKeyBlock, v_dims]
  float* const keys_to_transpose_;  // [16, qk_dims]
};

}  // namespace triad
