#include "core/attention/block_rows.h"

#include <cstdint>

namespace triad {
namespace {

// Rows that pay for packing. Where tokens lie a stride apart a block spreads over as many pages, and a line of each
// value falls into a few sets of L1; packing a block costs about as much as 6 rows' products.
constexpr int64_t kRowsWorthPacking = 48;

}  // namespace

BlockReader::BlockReader(const AttentionProblem& problem, const WorkItem& item, int64_t block_keys, Scratch& scratch)
    : problem_(problem),
      sequence_(problem.sequences[item.sequence]),
      item_(item),
      scratch_(scratch),
      block_keys_(block_keys) {}

SourceRows BlockReader::RowsOf(const HeadRows& rows, int64_t begin, int64_t dims, KeyRange keys) const {
  const int64_t element_bytes = ByteSize(problem_.dtype);
  const int64_t first = begin + keys.begin * rows.token_stride + item_.kv_head * rows.head_stride;
  return {.data = rows.data + first * element_bytes,
          .stride_bytes = rows.token_stride * element_bytes,
          .count = keys.end - keys.begin,
          .dtype = problem_.dtype,
          .dims = dims};
}

bool BlockReader::ReadsInPlace(const SourceRows& rows) const {
  if (rows.dtype != DType::kF32 || reinterpret_cast<uintptr_t>(rows.data) % alignof(float) != 0) return false;
  const bool is_dense = rows.stride_bytes == rows.dims * ByteSize(rows.dtype);
  return is_dense || item_.row_end - item_.row_begin < kRowsWorthPacking;
}

BlockRows BlockReader::Read(KeyRange keys, ReadValues values) {
  BlockRows block;
  const BlockSource source = SourceOf(keys);
  const SourceRows& key_rows = source.keys;
  if (ReadsInPlace(key_rows)) {
    block.keys = reinterpret_cast<const float*>(key_rows.data);
    block.key_stride = problem_.key.token_stride;
  } else {
    block.key_stride = key_rows.packed_stride();
    if (keys_ == nullptr) keys_ = scratch_.Allocate<float>(block_keys_ * block.key_stride);
    PackRows(key_rows, keys_);
    block.keys = keys_;
  }
  const SourceRows& value_rows = source.values;
  if (values == ReadValues::kAsTheyAre && ReadsInPlace(value_rows)) {
    block.values = reinterpret_cast<const float*>(value_rows.data);
    block.value_stride = problem_.value.token_stride;
    return block;
  }
  block.value_stride = value_rows.packed_stride();
  if (values_ == nullptr) values_ = scratch_.Allocate<float>(block_keys_ * block.value_stride);
  PackRows(value_rows, values_);
  block.values = values_;
  if (values == ReadValues::kAsTheyAre) return block;
  block.value_traits = SanitizeValues(values_, value_rows.count * block.value_stride,
                                      values == ReadValues::kScaled ? kHugeValueScale : 1.0f);
  return block;
}

BlockSource BlockReader::SourceOf(KeyRange keys) const {
  return {.keys = RowsOf(problem_.key, sequence_.key_begin, problem_.qk_head_dim, keys),
          .values = RowsOf(problem_.value, sequence_.value_begin, problem_.v_head_dim, keys)};
}

}  // namespace triad
