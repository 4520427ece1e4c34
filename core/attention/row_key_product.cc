// Scores: 8 keys at a time, transposed in registers, so that a key is a lane and its sum one chain over dims. Two such
// groups at once, because a chain waits 4 cycles for each step. Of one head they are a page of 64 dims of f32, which is
// read in order before it is read dim by dim, unless rows are fetched ahead.
#include "core/attention/row_product.h"

#include <algorithm>
#include <cstring>

#include "core/base/dims.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/row_key_product.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "core/attention/element_io-inl.h"
#include "core/attention/row_product-inl.h"
#include "core/attention/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {

// kDims dims of kRowsAtOnce keys, from `dim` on: columns[i] holds dim + i of each. One by one where nothing better is
// written for the type.
template <class Elements>
struct KeyColumns {
  static constexpr int64_t kDims = 4;  // at once
  static HWY_INLINE void Load(const std::byte* const* keys, int64_t dim, RowF32 (&columns)[kDims]) {
    for (int64_t i = 0; i < kDims; ++i) {
      HWY_ALIGN float column[kRowsAtOnce];
      for (int64_t key = 0; key < kRowsAtOnce; ++key) {
        column[key] = LoadElement(keys[key] + (dim + i) * Elements::kBytes, Elements::kDType);
      }
      columns[i] = hn::Load(RowLanes(), column);
    }
  }
};

template <>
struct KeyColumns<F32Elements> {
  static constexpr int64_t kDims = 4;
  static HWY_INLINE void Load(const std::byte* const* keys, int64_t dim, RowF32 (&columns)[kDims]) {
    const auto row = [&](int64_t key) HWY_ATTR { return reinterpret_cast<const float*>(keys[key]) + dim; };
    LoadColumns(RowLanes(), row, columns);
  }
};

#if HWY_TARGET <= HWY_AVX2  // what widens 8 at once
template <class Elements>
struct ShortKeyColumns {
  static constexpr int64_t kDims = 8;
  static HWY_INLINE void Load(const std::byte* const* keys, int64_t dim, RowF32 (&columns)[kDims]) {
    hn::Vec<ShortLanes> bits[kDims];
    LoadShortColumns([&](int64_t key) HWY_ATTR { return reinterpret_cast<const uint16_t*>(keys[key]) + dim; }, bits);
#pragma GCC unroll 8
    for (int64_t i = 0; i < kDims; ++i) columns[i] = Elements::Widen(RowLanes(), bits[i]);
  }
};
template <>
struct KeyColumns<Bf16Elements> : ShortKeyColumns<Bf16Elements> {};
template <>
struct KeyColumns<F16Elements> : ShortKeyColumns<F16Elements> {};
#endif

// What is multiplied at once of a key, a term, and how it adds to a score: a dim,
template <class Elements>
struct DimTerms {
  using Columns = KeyColumns<Elements>;
  static constexpr int64_t kBytes = Elements::kBytes;
  static int64_t Count(int64_t dims) { return dims; }
  static int64_t Whole(int64_t dims) { return dims; }  // those that Columns may load
  static HWY_INLINE float Load(const std::byte* key, int64_t term, int64_t) {
    return LoadElement(key + term * kBytes, Elements::kDType);
  }
  static HWY_INLINE RowF32 Add(RowF32 query, RowF32 key, RowF32 sum) { return hn::MulAdd(query, key, sum); }
};

// or a pair of dims of bf16, which moves like one of f32.
struct PairTerms {
  using Columns = KeyColumns<F32Elements>;
  static constexpr int64_t kBytes = 4;
  static int64_t Count(int64_t dims) { return CeilDiv(dims, 2); }
  static int64_t Whole(int64_t dims) { return dims / 2; }
  static HWY_INLINE float Load(const std::byte* key, int64_t term, int64_t dims) {
    float pair = 0;
    std::memcpy(&pair, key + term * kBytes, static_cast<size_t>(std::min(2 * (dims - 2 * term), kBytes)));
    return pair;
  }
  static HWY_INLINE RowF32 Add(RowF32 query, RowF32 key, RowF32 sum) { return AddBf16Products(query, key, sum); }
};

// kGroups * kRowsAtOnce keys of a head from `first` on; past the last key, the last one again.
template <class Terms, int kRows, int kGroups>
HWY_INLINE void ScoreKeys(const RowScoreProduct& product, int64_t head, int64_t first, FetchPace& pace) {
  using Columns = typename Terms::Columns;
  const RowLanes d;
  const std::byte* keys[kGroups * kRowsAtOnce];
  const int64_t head_bytes = head * product.heads.stride_bytes;
  const float* HWY_RESTRICT queries = product.queries + head * kRows * product.query_stride;
  for (int64_t i = 0; i < kGroups * kRowsAtOnce; ++i) {
    keys[i] = product.keys.row(std::min(first + i, product.keys.count - 1)) + head_bytes;
  }
  if (product.ahead == nullptr) ReadInOrder(product.keys, first, first + kGroups * kRowsAtOnce);
  RowF32 sums[kGroups][kRows];
#pragma GCC unroll 2
  for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[g][r] = hn::Zero(d);
  }
  int64_t term = 0;
  for (; term + Columns::kDims <= Terms::Whole(product.keys.dims); term += Columns::kDims) {
    pace.Step();
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      RowF32 columns[Columns::kDims];
      Columns::Load(keys + g * kRowsAtOnce, term, columns);
#pragma GCC unroll 8
      for (int i = 0; i < Columns::kDims; ++i) {
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          const RowF32 query = hn::Set(d, queries[r * product.query_stride + term + i]);
          sums[g][r] = Terms::Add(query, columns[i], sums[g][r]);
        }
      }
    }
  }
  for (; term < Terms::Count(product.keys.dims); ++term) {
    for (int g = 0; g < kGroups; ++g) {
      HWY_ALIGN float column[kRowsAtOnce];
      for (int64_t i = 0; i < kRowsAtOnce; ++i) {
        column[i] = Terms::Load(keys[g * kRowsAtOnce + i], term, product.keys.dims);
      }
      for (int r = 0; r < kRows; ++r) {
        const RowF32 query = hn::Set(d, queries[r * product.query_stride + term]);
        sums[g][r] = Terms::Add(query, hn::Load(d, column), sums[g][r]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    float* scores = product.scores + (head * kRows + r) * product.score_stride + first;
    for (int g = 0; g < kGroups; ++g) hn::StoreU(sums[g][r], d, scores + g * kRowsAtOnce);
  }
}

template <class Terms, int kRows>
void MultiplyKeysOf(const RowScoreProduct& product) {
  constexpr int64_t kStep = 2 * kRowsAtOnce;
  FetchPace pace(product.ahead, /*parts=*/1,
                 product.heads.count * CeilDiv(product.keys.count, kStep) *
                     CeilDiv(Terms::Count(product.keys.dims), Terms::Columns::kDims));
  int64_t key = 0;
  for (; key + kRowsAtOnce < product.keys.count; key += kStep) {
    for (int64_t h = 0; h < product.heads.count; ++h) ScoreKeys<Terms, kRows, 2>(product, h, key, pace);
  }
  if (key >= product.keys.count) return;
  for (int64_t h = 0; h < product.heads.count; ++h) ScoreKeys<Terms, kRows, 1>(product, h, key, pace);
}

void MultiplyKeysByRows(const RowScoreProduct& product) {
  WithRows(product.rows, [&](auto rows) HWY_ATTR {
    if (product.bf16_pairs) return MultiplyKeysOf<PairTerms, rows>(product);
    WithElements(product.keys.dtype,
                 [&](auto elements) HWY_ATTR { MultiplyKeysOf<DimTerms<decltype(elements)>, rows>(product); });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triad {

HWY_EXPORT(MultiplyKeysByRows);

void MultiplyKeysByRows(const RowScoreProduct& product) { HWY_DYNAMIC_DISPATCH(MultiplyKeysByRows)(product); }

}  // namespace triad
#endif  // HWY_ONCE
