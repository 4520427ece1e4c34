// A register tile is kRows rows by some vectors of columns: for each step of depth it loads the vectors of `right`,
// broadcasts one element of `left` per row, and multiplies them into rows x vectors sums that stay in registers for the
// whole depth. AVX2 has 16 registers: 6 rows x 2 vectors of 8 leave 2 for `right` and 1 for the broadcast, and make 12
// independent chains where 8 hide the latency of an FMA (4 cycles, 2 per cycle). AVX-512 has 32: 6 x 4.
//
// Columns go in panels as wide as a register tile: a panel of `right` (keys: 64 deep x 16 x 4 bytes = 4 KiB; values:
// 256 deep = 16 KiB) stays in L1 while a group of rows passes over it.
#include "core/attention/tile_product.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/tile_product.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "core/attention/element_io-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {

// Rows that all panels pass over before the next ones come: 48 x 64 x 4 bytes of queries are 12 KiB, and stay in L1
// beside a panel of keys.
constexpr int64_t kRowsAtOnce = 48;
constexpr int64_t kColumnStep = 16;  // columns are a multiple of this
constexpr int kMostRows = 6;
constexpr int kMostVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
// Few rows (decode) make as many chains from more vectors.
constexpr int VectorsFor(int rows) { return rows == 1 ? 8 : rows <= 3 ? 4 : kMostVectors; }

struct Keys {
  int64_t begin = 0;
  int64_t end = 0;
};

// Whose result is rows [0, kRows) by the columns of kVectors vectors.
template <int kRows, int kVectors>
HWY_INLINE void RegisterTile(const TileProduct& product, int64_t row, int64_t column, Keys depth) {
  const F32Vector d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  F32 sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT left = product.left + row * product.left_stride;
  const float* HWY_RESTRICT right = product.right + column;
  const int64_t left_stride = product.left_stride;
  const int64_t right_stride = product.right_stride;
  for (int64_t i = depth.begin; i < depth.end; ++i) {
    F32 vectors[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) vectors[v] = hn::Load(d, right + i * right_stride + v * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const F32 element = hn::Set(d, left[r * left_stride + i]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(element, vectors[v], sums[r][v]);
    }
  }
  float* HWY_RESTRICT result = product.result + row * product.result_stride + column;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::Store(sums[r][v], d, result + r * product.result_stride + v * lanes);
  }
}

// The keys that some of `count` rows from `row` on sees.
HWY_INLINE Keys KeysOf(const TileProduct& product, int64_t row, int64_t count) {
  Keys keys;
  for (int64_t r = row; r < row + count; ++r) {
    if (product.begin[r] == product.end[r]) continue;
    const bool is_first = keys.begin == keys.end;
    keys.begin = is_first ? product.begin[r] : std::min<int64_t>(keys.begin, product.begin[r]);
    keys.end = std::max<int64_t>(keys.end, product.end[r]);
  }
  return keys;
}

// kRows rows from `row` on, over the columns [first, last) of a panel.
template <int kRows, bool kKeysAreColumns>
HWY_INLINE void Strip(const TileProduct& product, int64_t row, int64_t first, int64_t last) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(F32Vector()));
  constexpr int kVectors = VectorsFor(kRows);
  const Keys keys = KeysOf(product, row, kRows);
  if (kKeysAreColumns && (keys.begin >= last || keys.end <= first)) return;
  const Keys depth = kKeysAreColumns ? Keys{.begin = 0, .end = product.depth} : keys;
  int64_t column = first;
  for (; column + kVectors * lanes <= last; column += kVectors * lanes) {
    RegisterTile<kRows, kVectors>(product, row, column, depth);
  }
  for (; column < last; column += lanes) RegisterTile<kRows, 1>(product, row, column, depth);
}

template <bool kKeysAreColumns>
HWY_INLINE void MultiplyRows(const TileProduct& product, int64_t first_row, int64_t last_row) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(F32Vector()));
  const int64_t panel =
      last_row - first_row < kMostRows ? product.columns : std::max(kMostVectors * lanes, kColumnStep);
  for (int64_t first = 0; first < product.columns; first += panel) {
    const int64_t last = std::min(first + panel, product.columns);
    int64_t row = first_row;
    for (; row + kMostRows <= last_row; row += kMostRows) {
      Strip<kMostRows, kKeysAreColumns>(product, row, first, last);
    }
    switch (last_row - row) {
      case 5:
        Strip<5, kKeysAreColumns>(product, row, first, last);
        break;
      case 4:
        Strip<4, kKeysAreColumns>(product, row, first, last);
        break;
      case 3:
        Strip<3, kKeysAreColumns>(product, row, first, last);
        break;
      case 2:
        Strip<2, kKeysAreColumns>(product, row, first, last);
        break;
      case 1:
        Strip<1, kKeysAreColumns>(product, row, first, last);
        break;
      default:
        break;
    }
  }
}

template <bool kKeysAreColumns>
HWY_INLINE void Multiply(const TileProduct& product) {
  for (int64_t row = 0; row < product.rows; row += kRowsAtOnce) {
    MultiplyRows<kKeysAreColumns>(product, row, std::min(row + kRowsAtOnce, product.rows));
  }
}

void MultiplyKeys(const TileProduct& product) { Multiply</*kKeysAreColumns=*/true>(product); }
void MultiplyValues(const TileProduct& product) { Multiply</*kKeysAreColumns=*/false>(product); }

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triad {

HWY_EXPORT(MultiplyKeys);
HWY_EXPORT(MultiplyValues);

void MultiplyKeys(const TileProduct& product) { HWY_DYNAMIC_DISPATCH(MultiplyKeys)(product); }
void MultiplyValues(const TileProduct& product) { HWY_DYNAMIC_DISPATCH(MultiplyValues)(product); }

}  // namespace triad
#endif  // HWY_ONCE
