// Rows become lanes. Compiled once per instruction set, hence the unusual guard (Highway's own).
#if defined(TRIAD_CORE_ATTENTION_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRIAD_CORE_ATTENTION_TRANSPOSE_INL_H_
#undef TRIAD_CORE_ATTENTION_TRANSPOSE_INL_H_
#else
#define TRIAD_CORE_ATTENTION_TRANSPOSE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows that become lanes at once: 4, or 8 where the two halves of a vector work side by side; 256 bits serve AVX-512
// too.
using RowLanes = hn::CappedTag<float, 8>;
using RowF32 = hn::Vec<RowLanes>;
constexpr int64_t kRowsAtOnce = hn::MaxLanes(RowLanes());

#if HWY_TARGET != HWY_SCALAR
// Rows r, r + 4, r + 8, ...: 4 elements of each, a row in each 128 bits of the vector.
template <class D, class RowAt>
HWY_INLINE hn::Vec<D> LoadEveryFourth(D d, const RowAt& row, int64_t r) {
  constexpr int64_t kLanes = hn::MaxLanes(D());
  if constexpr (kLanes <= 4) {
    return hn::LoadU(d, row(r));
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, LoadEveryFourth(half, row, r + kLanes / 2), LoadEveryFourth(half, row, r));
  }
}
#endif

// columns[i] holds element i, of 4, of as many rows as D has lanes; row(r) is where those of row r lie. 8 shuffles, and
// an insert for each row from the fifth on.
template <class D, class RowAt>
HWY_INLINE void LoadColumns(D d, const RowAt& row, hn::Vec<D> (&columns)[4]) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 4; ++i) columns[i] = hn::Load(d, row(0) + i);
#else
  const hn::Repartition<uint64_t, D> pairs;
  const auto row0 = LoadEveryFourth(d, row, 0), row1 = LoadEveryFourth(d, row, 1);
  const auto row2 = LoadEveryFourth(d, row, 2), row3 = LoadEveryFourth(d, row, 3);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, row0, row1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, row2, row3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, row0, row1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, row2, row3));
  columns[0] = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
  columns[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
  columns[2] = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
  columns[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
#endif
}

// The same for 8 elements of 16 bits: columns[i] holds element i of each of 8 rows. 24 shuffles.
#if HWY_TARGET <= HWY_AVX2
using ShortLanes = hn::Rebind<uint16_t, RowLanes>;
template <class RowAt>
HWY_INLINE void LoadShortColumns(const RowAt& row, hn::Vec<ShortLanes> (&columns)[8]) {
  const ShortLanes d;
  const hn::Repartition<uint32_t, ShortLanes> d32;
  const hn::Repartition<uint64_t, ShortLanes> d64;
  decltype(hn::Zero(d64)) quads[2][4];  // of 4 rows: elements 0 and 1, 2 and 3, ...
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const auto row0 = hn::LoadU(d, row(4 * half)), row1 = hn::LoadU(d, row(4 * half + 1));
    const auto row2 = hn::LoadU(d, row(4 * half + 2)), row3 = hn::LoadU(d, row(4 * half + 3));
    const auto low01 = hn::BitCast(d32, hn::InterleaveLower(d, row0, row1));
    const auto low23 = hn::BitCast(d32, hn::InterleaveLower(d, row2, row3));
    const auto high01 = hn::BitCast(d32, hn::InterleaveUpper(d, row0, row1));
    const auto high23 = hn::BitCast(d32, hn::InterleaveUpper(d, row2, row3));
    quads[half][0] = hn::BitCast(d64, hn::InterleaveLower(d32, low01, low23));
    quads[half][1] = hn::BitCast(d64, hn::InterleaveUpper(d32, low01, low23));
    quads[half][2] = hn::BitCast(d64, hn::InterleaveLower(d32, high01, high23));
    quads[half][3] = hn::BitCast(d64, hn::InterleaveUpper(d32, high01, high23));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    columns[2 * i] = hn::BitCast(d, hn::InterleaveLower(d64, quads[0][i], quads[1][i]));
    columns[2 * i + 1] = hn::BitCast(d, hn::InterleaveUpper(d64, quads[0][i], quads[1][i]));
  }
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#endif  // TRIAD_CORE_ATTENTION_TRANSPOSE_INL_H_
