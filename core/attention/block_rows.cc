#include "core/attention/block_rows.h"

#include <cstdint>

#include "core/base/dims.h"

namespace triad {
namespace {

// Rows that pay for packing. Where tokens lie a stride apart a block spreads over as many pages, and a line of each
// value falls into a few sets of L1; packing a block costs about as much as 6 rows' products.
constexpr int64_t kRowsWorthPacking = 48;

}  // namespace

BlockRows BlockRows::Rows(int64_t first, int64_t count) const {
  BlockRows rows = *this;
  rows.keys = keys.Rows(first, count);
  rows.values = value_pairs ? values.Rows(first / 2, CeilDiv(count, 2)) : values.Rows(first, count);
  return rows;
}

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
    placed.places = scratch_.Allocate<const std::byte*>(block_keys_);
    placed.copied = scratch_.Allocate<std::byte>(block_keys_ * row_bytes);
  }
  place.rows.pieces->Place({.begin = first, .stride = rows.stride_bytes, .row_bytes = row_bytes, .count = rows.count},
                           placed.copied, placed.places);
  rows.places = placed.places;
  return rows;
}

bool BlockReader::StaysInPlace(const SourceRows& rows) const {
  if (reads_anywhere()) return true;
  if (in_place_ == InPlace::kF32 && rows.dtype != DType::kF32) return false;
  const int64_t row_bytes = rows.dims * ByteSize(rows.dtype);
  const auto address = reinterpret_cast<uintptr_t>(rows.data);
  if ((address | static_cast<uintptr_t>(rows.stride_bytes | row_bytes)) % alignof(float) != 0) return false;
  const bool is_dense = rows.stride_bytes == row_bytes;
  return is_dense || item_.row_end - item_.row_begin < kRowsWorthPacking;
}

// Calls pack(rows, index of the first) for rows that PackRows takes: all, or one at a time.
template <class Pack>
void PackEach(const SourceRows& rows, const Pack& pack) {
  if (rows.places == nullptr) return pack(rows, 0);
  for (int64_t i = 0; i < rows.count; ++i) {
    pack({.data = rows.row(i), .count = 1, .dtype = rows.dtype, .dims = rows.dims}, i);
  }
}

SourceRows BlockReader::Packed(const SourceRows& rows, float*& packed) {
  const int64_t stride = rows.packed_stride();
  if (packed == nullptr) packed = scratch_.Allocate<float>(block_keys_ * stride);
  if (keeps_bf16()) {
    auto* const to = reinterpret_cast<uint16_t*>(packed);
    PackEach(rows, [&](const SourceRows& some, int64_t first) { PackBf16Rows(some, to + first * stride); });
  } else {
    PackEach(rows, [&](const SourceRows& some, int64_t first) { PackRows(some, packed + first * stride); });
  }
  const DType dtype = keeps_bf16() ? DType::kBf16 : DType::kF32;
  return {.data = reinterpret_cast<const std::byte*>(packed),
          .stride_bytes = stride * ByteSize(dtype),
          .count = rows.count,
          .dtype = dtype,
          .dims = rows.dims};
}

SourceRows BlockReader::PackedPairs(const SourceRows& values) {
  const int64_t stride = values.packed_stride();
  if (values_ == nullptr) values_ = scratch_.Allocate<float>(CeilDiv(block_keys_, 2) * stride);
  PackBf16Pairs(values, reinterpret_cast<uint32_t*>(values_));
  return {.data = reinterpret_cast<const std::byte*>(values_),
          .stride_bytes = stride * static_cast<int64_t>(sizeof(uint32_t)),
          .count = CeilDiv(values.count, 2),
          .dims = values.dims};
}

BlockRows BlockReader::Read(KeyRange keys, ReadValues values) {
  BlockRows block = {.keys = Placed(KeyPlace(), keys, placed_keys_),
                     .values = Placed(ValuePlace(), keys, placed_values_),
                     .value_pairs = in_place_ == InPlace::kBf16Pairs};
  if (!StaysInPlace(block.keys)) block.keys = Packed(block.keys, keys_);
  const bool as_they_are = values == ReadValues::kAsTheyAre;
  if (block.value_pairs) {
    block.values = PackedPairs(block.values);
  } else if (!as_they_are || !StaysInPlace(block.values)) {
    block.values = Packed(block.values, values_);
  }
  if (as_they_are) return block;
  const float scale = values == ReadValues::kScaled ? kHugeValueScale : 1.0f;
  const int64_t count = block.values.count * block.values.packed_stride();
  block.value_traits = keeps_bf16() ? SanitizeBf16Values(reinterpret_cast<uint16_t*>(values_),
                                                         block.value_pairs ? 2 * count : count, scale)
                                    : SanitizeValues(values_, count, scale);
  return block;
}

BlockRows BlockReader::SourceOf(KeyRange keys) const {
  const auto rows = [&](const Place& place) { return RowsAt(place.rows.data + FirstByte(place, keys), place, keys); };
  return {.keys = rows(KeyPlace()), .values = rows(ValuePlace())};
}

}  // namespace triad
