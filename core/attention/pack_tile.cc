// Packing runs once per key block of a work item, whose rows share it, so it costs a few percent of the products; what
// matters is that it streams through the source once, in order, and leaves operands that need no tails.
#include "core/attention/pack_tile.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/dims.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/pack_tile.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "core/attention/element_io-inl.h"
#include "core/attention/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {

// Tokens lie a stride apart, which the hardware does not always follow; 16 rows of 64 floats are 4 KiB, some 0.3 us
// ahead.
constexpr int64_t kRowsAhead = 16;

template <class Elements>
void PackRowsOf(const SourceRows& rows, float* HWY_RESTRICT packed) {
  const F32Vector d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t padded = rows.packed_stride();
  const int64_t source_bytes = rows.dims * Elements::kBytes;
  for (int64_t r = 0; r < rows.count; ++r) {
    const std::byte* source = rows.data + r * rows.stride_bytes;
    if (r + kRowsAhead < rows.count + rows.following) {
      const std::byte* ahead = source + kRowsAhead * rows.stride_bytes;
      for (int64_t offset = 0; offset < source_bytes; offset += 64) hwy::Prefetch(ahead + offset);
    }
    float* HWY_RESTRICT row = packed + r * padded;
    int64_t i = 0;
    for (; i < rows.dims; i += lanes) {
      hn::Store(Elements::Load(source + i * Elements::kBytes, std::min(lanes, rows.dims - i)), d, row + i);
    }
    for (; i < padded; i += lanes) hn::Store(hn::Zero(d), d, row + i);
  }
}

void PackRows(const SourceRows& rows, float* packed) {
  WithElements(rows.dtype, [&](auto elements) HWY_ATTR { PackRowsOf<decltype(elements)>(rows, packed); });
}

void PackBf16Pairs(const SourceRows& rows, uint32_t* packed) {
  const hn::Rebind<uint32_t, F32Vector> d;
  const hn::Rebind<uint16_t, F32Vector> d16;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto load = [&](const std::byte* row, int64_t i) HWY_ATTR {
    return hn::PromoteTo(d, LoadUpTo<uint16_t>(d16, row + 2 * i, std::min(lanes, rows.dims - i)));
  };
  for (int64_t r = 0; r < rows.count; r += 2, packed += rows.packed_stride()) {
    const std::byte* const first = rows.data + r * rows.stride_bytes;
    const bool has_second = r + 1 < rows.count;
    int64_t i = 0;
    for (; i < rows.dims; i += lanes) {
      auto pair = load(first, i);
      if (has_second) pair = hn::Or(pair, hn::ShiftLeft<16>(load(first + rows.stride_bytes, i)));
      hn::Store(pair, d, packed + i);
    }
    for (; i < rows.packed_stride(); i += lanes) hn::Store(hn::Zero(d), d, packed + i);
  }
}

void TransposeRows(const RowsToTranspose& from, float* transposed, int64_t transposed_stride) {
  const RowLanes d;
  // Where each row lies is found once: the rows of a strip are few and short.
  for (int64_t first = 0; first < from.count; first += kRowsAtOnce) {
    const float* rows[kRowsAtOnce];
    for (int64_t r = 0; r < kRowsAtOnce; ++r) rows[r] = from.rows + (first + r) * from.stride;
    float* HWY_RESTRICT to = transposed + first;
    for (int64_t i = 0; i < from.columns; i += 4, to += 4 * transposed_stride) {
      RowF32 columns[4];
      LoadColumns(
          d, [&](int64_t r) HWY_ATTR { return rows[r] + i; }, columns);
#pragma GCC unroll 4
      for (int64_t c = 0; c < 4; ++c) hn::StoreU(columns[c], d, to + c * transposed_stride);
    }
  }
}

// The largest magnitude, as the bits of an f32: ordered like the magnitudes, infinity and NaN on top.
uint32_t LargestMagnitudeBits(const float* HWY_RESTRICT values, int64_t count) {
  const F32Vector d;
  const hn::Rebind<int32_t, F32Vector> di32;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto largest = hn::Zero(di32);
  for (int64_t i = 0; i < count; i += lanes) {
    largest = hn::Max(largest, hn::BitCast(di32, hn::Abs(hn::Load(d, values + i))));
  }
  return static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(di32, largest)));
}

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triad {
namespace {
constexpr uint32_t kInfinityBits = 0x7f800000;
constexpr uint32_t kHugeBits = 0x6f800000;  // 2^96: a million of them, 2^116, stay far inside f32
}  // namespace

HWY_EXPORT(PackRows);
HWY_EXPORT(PackBf16Pairs);
HWY_EXPORT(TransposeRows);
HWY_EXPORT(LargestMagnitudeBits);

void PackRows(const SourceRows& rows, float* packed) { HWY_DYNAMIC_DISPATCH(PackRows)(rows, packed); }

void PackBf16Pairs(const SourceRows& rows, uint32_t* packed) { HWY_DYNAMIC_DISPATCH(PackBf16Pairs)(rows, packed); }

void TransposeRows(const RowsToTranspose& from, float* transposed, int64_t transposed_stride) {
  HWY_DYNAMIC_DISPATCH(TransposeRows)(from, transposed, transposed_stride);
}

void PackBf16Rows(const SourceRows& rows, uint16_t* packed) {
  const int64_t padded = RoundUp(rows.dims, kPackedStep);
  for (int64_t r = 0; r < rows.count; ++r) {
    uint16_t* row = packed + r * padded;
    std::memcpy(row, rows.data + r * rows.stride_bytes, static_cast<size_t>(rows.dims) * sizeof(uint16_t));
    std::fill(row + rows.dims, row + padded, uint16_t{0});
  }
}

bool AllFinite(const float* values, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(LargestMagnitudeBits)(values, count) < kInfinityBits;
}

ValueTraits SanitizeValues(float* values, int64_t count, float scale) {
  const uint32_t largest = HWY_DYNAMIC_DISPATCH(LargestMagnitudeBits)(values, count);
  ValueTraits traits{.has_non_finite = largest >= kInfinityBits, .has_huge = largest >= kHugeBits};
  if (!traits.has_huge && scale == 1) return traits;
  traits.has_huge = false;
  for (float* value = values; value != values + count; ++value) {
    if (!std::isfinite(*value)) *value = 0;
    traits.has_huge |= std::fabs(*value) >= 0x1p96f;
    *value *= scale;
  }
  return traits;
}

ValueTraits SanitizeBf16Values(uint16_t* values, int64_t count, float scale) {
  ValueTraits traits;
  for (uint16_t* value = values; value != values + count; ++value) {
    const uint32_t magnitude = (*value & 0x7fffu) << 16;
    if (magnitude >= kInfinityBits) {
      traits.has_non_finite = true;
      *value = 0;
    } else if (magnitude >= kHugeBits) {
      traits.has_huge = true;
    }
    if (scale != 1) *value = F32ToBf16(Bf16ToF32(*value) * scale);
  }
  return traits;
}

}  // namespace triad
#endif  // HWY_ONCE
