#include "core/attention/block_rows.h"

#include <cstdint>

namespace triad {
namespace {

// Rows that pay for packing. Where tokens lie a stride apart a block spreads over as many pages, and a line of each
// value falls into a few sets of L1; packing a block costs about as much as 6 rows' products.
constexpr int64_t kRowsWorthPacking = 48;

}  // namespace

BlockReader::BlockReader(const AttentionProblem& problem, const WorkItem& item, int64_t block_keys, InPlace in_place,
                         Scratch& scratch)
    : problem_(problem),
      sequence_(problem.sequences[item.sequence]),
      item_(item),
      scratch_(scratch),
      block_keys_(block_keys),
      in_place_(in_place) {}

SourceRows BlockReader::RowsOf(const HeadRows& rows, int64_t begin, int64_t dims, KeyRange keys) const {
  const int64_t element_bytes = ByteSize(problem_.dtype);
  const int64_t first = begin + keys.begin * rows.token_stride + item_.kv_head * rows.head_stride;
  return {.data = rows.data + first * element_bytes,
          .stride_bytes = rows.token_stride * element_bytes,
          .count = keys.end - keys.begin,
          .dtype = problem_.dtype,
          .dims = dims};
}

bool BlockReader::StaysInPlace(const SourceRows& rows) const {
  if (in_place_ == InPlace::kAll) return true;
  if (rows.dtype != DType::kF32 || reinterpret_cast<uintptr_t>(rows.data) % alignof(float) != 0) return false;
  const bool is_dense = rows.stride_bytes == rows.dims * ByteSize(rows.dtype);
  return is_dense || item_.row_end - item_.row_begin < kRowsWorthPacking;
}

SourceRows BlockReader::Packed(const SourceRows& rows, float*& packed) {
  const int64_t stride = rows.packed_stride();
  if (packed == nullptr) packed = scratch_.Allocate<float>(block_keys_ * stride);
  PackRows(rows, packed);
  return {.data = reinterpret_cast<const std::byte*>(packed),
          .stride_bytes = stride * static_cast<int64_t>(sizeof(float)),
          .count = rows.count,
          .dtype = DType::kF32,
          .dims = rows.dims};
}

BlockRows BlockReader::Read(KeyRange keys, ReadValues values) {
  BlockRows block = SourceOf(keys);
  if (!StaysInPlace(block.keys)) block.keys = Packed(block.keys, keys_);
  if (values == ReadValues::kAsTheyAre) {
    if (!StaysInPlace(block.values)) block.values = Packed(block.values, values_);
    return block;
  }
  const int64_t count = block.values.count * block.values.packed_stride();
  block.values = Packed(block.values, values_);
  block.value_traits = SanitizeValues(values_, count, values == ReadValues::kScaled ? kHugeValueScale : 1.0f);
  return block;
}

BlockRows BlockReader::SourceOf(KeyRange keys) const {
  return {.keys = RowsOf(problem_.key, sequence_.key_begin, problem_.qk_head_dim, keys),
          .values = RowsOf(problem_.value, sequence_.value_begin, problem_.v_head_dim, keys)};
}

}  // namespace triad
