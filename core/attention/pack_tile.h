// From a request's rows (any type, any alignment, strided) to the dense, padded, 64-byte aligned operands of a tile.
// Highway.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/base/dims.h"
#include "core/tensor/dtype.h"

namespace triad {

// Packed rows are padded with zeros to a multiple of this many elements.
constexpr int64_t kPackedStep = 16;

// Borrows `dims` contiguous elements per row.
struct SourceRows {
  const std::byte* data = nullptr;
  int64_t stride_bytes = 0;
  const std::byte* const* places = nullptr;  // set: where each row begins, those following too, and not as above
  int64_t count = 0;
  int64_t following = 0;  // rows past these that will be read next: fetched ahead
  DType dtype = DType::kF32;
  int64_t dims = 0;

  const std::byte* row(int64_t i) const { return places == nullptr ? data + i * stride_bytes : places[i]; }
  // Rows [first, first + count) of these and those following.
  SourceRows Rows(int64_t first, int64_t new_count) const;

  // Elements of a packed row.
  int64_t packed_stride() const { return RoundUp(dims, kPackedStep); }
};

inline SourceRows SourceRows::Rows(int64_t first, int64_t new_count) const {
  SourceRows rows = *this;
  if (places == nullptr) {
    rows.data += first * stride_bytes;
  } else {
    rows.places += first;
  }
  rows.count = new_count;
  rows.following = std::max<int64_t>(count + following - first - new_count, 0);
  return rows;
}

// packed [count, packed_stride()]: the rows, widened to f32. Not of rows that have places.
void PackRows(const SourceRows& rows, float* packed);

// The same for rows of bf16, kept as they are.
void PackBf16Rows(const SourceRows& rows, uint16_t* packed);

// packed [count / 2 rounded up, packed_stride()]: rows of bf16, each number beside the one of the next row, the earlier
// one in the lower half; beside those of a last row that has no next, zeros.
void PackBf16Pairs(const SourceRows& rows, uint32_t* packed);

// transposed [columns, count] = rows [count, columns], transposed. count is a multiple of 8, columns one of 4.
struct RowsToTranspose {
  const float* rows = nullptr;
  int64_t stride = 0;  // of `rows`, in elements
  int64_t count = 0;
  int64_t columns = 0;
};
void TransposeRows(const RowsToTranspose& from, float* transposed, int64_t transposed_stride);

// For values whose sums could overflow (ValueTraits::has_huge): a power of two, so exact; 2^128 becomes 2^96.
constexpr float kHugeValueScale = 0x1p-32f;

// What packed values hold besides ordinary numbers.
struct ValueTraits {
  bool has_non_finite = false;  // NaN or infinity, replaced by 0
  bool has_huge = false;        // magnitudes whose sums could leave f32's range: 2^96 and more
};

// Whether all of values [count] are numbers. Aligned to 64 bytes, count a multiple of 16.
bool AllFinite(const float* values, int64_t count);

// Replaces what is not finite in rows [count] by 0, multiplies the rest by `scale` (a power of two), and says what was
// there.
ValueTraits SanitizeValues(float* values, int64_t count, float scale);
// The same for bf16; scale is applied exactly unless it leaves the normal range.
ValueTraits SanitizeBf16Values(uint16_t* values, int64_t count, float scale);

}  // namespace triad
