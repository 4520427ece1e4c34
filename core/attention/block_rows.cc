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

int64_t BlockReader::FirstByte(const Place& place, KeyRange keys) const {
  const HeadRows& rows = place.rows;
  return (place.begin + keys.begin * rows.token_stride + item_.kv_head * rows.head_stride) * ByteSize(problem_.dtype);
}

SourceRows BlockReader::RowsAt(const std::byte* data, const Place& place, KeyRange keys) const {
  return {.data = data,
          .stride_bytes = place.rows.token_stride * ByteSize(problem_.dtype),
          .count = keys.end - keys.begin,
          .dtype = problem_.dtype,
          .dims = place.dims};
}

SourceRows BlockReader::Placed(const Place& place, KeyRange keys, PlacedRows& placed) {
  const int64_t first = FirstByte(place, keys);
  if (place.rows.pieces == nullptr) return RowsAt(place.rows.data + first, place, keys);
  SourceRows rows = RowsAt(nullptr, place, keys);
  const int64_t row_bytes = ((item_.kv_heads - 1) * place.rows.head_stride + place.dims) * ByteSize(problem_.dtype);
  if (placed.places == nullptr) {
    placed.places = scratch_.Allocate<const std::byte*>(2 * block_keys_);
    placed.copied = scratch_.Allocate<std::byte>(block_keys_ * row_bytes);
  }
  // What follows is fetched ahead: at most another block, if the sequence has it.
  rows.following = std::min(block_keys_, sequence_.key_length - keys.end);
  place.rows.pieces->Place({.begin = first,
                            .stride = rows.stride_bytes,
                            .row_bytes = row_bytes,
                            .count = rows.count,
                            .following = rows.following},
                           placed.copied, placed.places);
  rows.places = placed.places;
  return rows;
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
  if (rows.places == nullptr) {
    PackRows(rows, packed);
  } else {
    for (int64_t i = 0; i < rows.count; ++i) {
      PackRows({.data = rows.row(i), .count = 1, .dtype = rows.dtype, .dims = rows.dims}, packed + i * stride);
    }
  }
  return {.data = reinterpret_cast<const std::byte*>(packed),
          .stride_bytes = stride * static_cast<int64_t>(sizeof(float)),
          .count = rows.count,
          .dtype = DType::kF32,
          .dims = rows.dims};
}

BlockRows BlockReader::Read(KeyRange keys, ReadValues values) {
  BlockRows block = {.keys = Placed(KeyPlace(), keys, placed_keys_),
                     .values = Placed(ValuePlace(), keys, placed_values_)};
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
  const auto rows = [&](const Place& place) { return RowsAt(place.rows.data + FirstByte(place, keys), place, keys); };
  return {.keys = rows(KeyPlace()), .values = rows(ValuePlace())};
}

}  // namespace triad
