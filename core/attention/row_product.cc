// Scores: 8 keys at a time, so that a key is a lane and its sum one chain over dims. 4 dims of 8 keys are transposed in
// registers, two halves of a vector at once: 8 shuffles and 4 inserts for 32 numbers.
// Two such groups at once, because a chain waits 4 cycles for each step. 256-bit
// vectors serve AVX-512 too.
//
// Outputs: 8 sums, as many chains as hide the latency of an FMA, stay in registers over all keys of the block: 8
// vectors of dims of one row, or 2 of four rows.
#include "core/attention/row_product.h"

#include <algorithm>
#include <limits>

#include "core/base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/row_product.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "core/attention/element_io-inl.h"
#include "core/attention/score_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {

using KeyVector = hn::CappedTag<float, 8>;
using KeyF32 = hn::Vec<KeyVector>;
constexpr int64_t kKeysAtOnce = hn::MaxLanes(KeyVector());

// Dims [dim, dim + 4) of kKeysAtOnce keys: columns[i] holds dim + i of each.
HWY_INLINE void LoadColumns(const float* const* keys, int64_t dim, KeyF32 (&columns)[4]) {
  const KeyVector d;
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 4; ++i) columns[i] = hn::Load(d, keys[0] + dim + i);
#else
#if HWY_MAX_BYTES >= 32
  const hn::Half<KeyVector> half;
  const auto load = [&](int i) HWY_ATTR {
    return hn::Combine(d, hn::LoadU(half, keys[i + 4] + dim), hn::LoadU(half, keys[i] + dim));
  };
#else
  const auto load = [&](int i) HWY_ATTR { return hn::LoadU(d, keys[i] + dim); };
#endif
  const hn::Repartition<uint64_t, KeyVector> pairs;
  const auto row0 = load(0), row1 = load(1), row2 = load(2), row3 = load(3);
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

// kGroups * kKeysAtOnce keys from `first` on; past the last key, the last one again.
template <int kRows, int kGroups>
HWY_INLINE void ScoreKeys(const RowScoreProduct& product, int64_t first) {
  const KeyVector d;
  const float* keys[kGroups * kKeysAtOnce];
  for (int64_t i = 0; i < kGroups * kKeysAtOnce; ++i) {
    keys[i] = product.keys + std::min(first + i, product.key_count - 1) * product.key_stride;
  }
  KeyF32 sums[kGroups][kRows];
#pragma GCC unroll 2
  for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[g][r] = hn::Zero(d);
  }
  int64_t dim = 0;
  for (; dim + 4 <= product.dims; dim += 4) {
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      KeyF32 columns[4];
      LoadColumns(keys + g * kKeysAtOnce, dim, columns);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          const KeyF32 query = hn::Set(d, product.queries[r * product.query_stride + dim + i]);
          sums[g][r] = hn::MulAdd(query, columns[i], sums[g][r]);
        }
      }
    }
  }
  for (; dim < product.dims; ++dim) {
    for (int g = 0; g < kGroups; ++g) {
      HWY_ALIGN float column[kKeysAtOnce];
      for (int64_t i = 0; i < kKeysAtOnce; ++i) column[i] = keys[g * kKeysAtOnce + i][dim];
      for (int r = 0; r < kRows; ++r) {
        const KeyF32 query = hn::Set(d, product.queries[r * product.query_stride + dim]);
        sums[g][r] = hn::MulAdd(query, hn::Load(d, column), sums[g][r]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    float* scores = product.scores + r * product.score_stride + first;
    for (int g = 0; g < kGroups; ++g) hn::StoreU(sums[g][r], d, scores + g * kKeysAtOnce);
  }
}

// Dims [dim, dim + count) of row `row` of those that come next, if there is one.
HWY_INLINE void FetchDims(const SourceRows& next, int64_t row, int64_t dim, int64_t count) {
  if (row >= next.count) return;
  const int64_t element_bytes = ByteSize(next.dtype);
  const std::byte* first = next.data + row * next.stride_bytes + dim * element_bytes;
  const int64_t bytes = std::min(count, next.dims - dim) * element_bytes;
  for (int64_t offset = 0; offset < bytes; offset += 64) __builtin_prefetch(first + offset, 0, /*locality=*/2);
}

template <int kRows>
void MultiplyKeysOf(const RowScoreProduct& product) {
  int64_t key = 0;
  for (; key + kKeysAtOnce < product.key_count; key += 2 * kKeysAtOnce) {
    for (int64_t i = 0; i < 2 * kKeysAtOnce; ++i) FetchDims(product.next, key + i, 0, product.next.dims);
    ScoreKeys<kRows, 2>(product, key);
  }
  if (key < product.key_count) ScoreKeys<kRows, 1>(product, key);
}

// Vectors [dim, dim + kVectors) of kRows rows from `row` on.
template <int kRows, int kVectors>
HWY_INLINE void SumValues(const RowValueProduct& product, int64_t dim) {
  const F32Vector d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  F32 sums[kRows][kVectors];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const float* HWY_RESTRICT values = product.values + dim;
  for (int64_t key = 0; key < product.key_count; ++key) {
    FetchDims(product.next, key, dim, kVectors * lanes);
    F32 vectors[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) vectors[v] = hn::LoadU(d, values + v * lanes);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const F32 weight = hn::Set(d, product.weights[r * product.weight_stride + key]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(vectors[v], weight, sums[r][v]);
    }
    values += product.value_stride;
  }
  for (int r = 0; r < kRows; ++r) {
    float* output = product.output + r * product.output_stride + dim;
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, output + v * lanes);
  }
}

template <int kRows>
void MultiplyValuesOf(const RowValueProduct& product) {
  constexpr int kVectors = kRows == 1 ? 8 : kRows == 2 ? 4 : 2;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(F32Vector()));
  int64_t dim = 0;
  for (; dim + kVectors * lanes <= product.dims; dim += kVectors * lanes) SumValues<kRows, kVectors>(product, dim);
  for (; dim + lanes <= product.dims; dim += lanes) SumValues<kRows, 1>(product, dim);
  for (; dim < product.dims; ++dim) {
    for (int r = 0; r < kRows; ++r) {
      const hn::CappedTag<float, 1> one;  // the vectors' own multiply-add, fused or not
      auto sum = hn::Zero(one);
      for (int64_t key = 0; key < product.key_count; ++key) {
        sum = hn::MulAdd(hn::Set(one, product.values[key * product.value_stride + dim]),
                         hn::Set(one, product.weights[r * product.weight_stride + key]), sum);
      }
      product.output[r * product.output_stride + dim] = hn::GetLane(sum);
    }
  }
}

// Calls `multiply` with the number of rows as a constant.
template <class Multiply>
HWY_INLINE void WithRows(int64_t rows, const Multiply& multiply) {
  switch (rows) {
    case 1:
      return multiply(std::integral_constant<int, 1>());
    case 2:
      return multiply(std::integral_constant<int, 2>());
    case 3:
      return multiply(std::integral_constant<int, 3>());
    case 4:
      return multiply(std::integral_constant<int, 4>());
    default:
      TRIAD_CHECK(false, "few rows are at most kFewRows");
  }
}

void MultiplyKeysByRows(const RowScoreProduct& product) {
  WithRows(product.rows, [&](auto rows) HWY_ATTR { MultiplyKeysOf<rows>(product); });
}

void MultiplyValuesByRows(const RowValueProduct& product) {
  WithRows(product.rows, [&](auto rows) HWY_ATTR { MultiplyValuesOf<rows>(product); });
}

RowMaxAndSum SoftmaxOfRow(float* HWY_RESTRICT scores, int64_t count, float factor) {
  const KeyVector d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  KeyF32 largest = hn::Set(d, kLowest);
  for (int64_t k = 0; k < count; k += lanes) largest = hn::Max(hn::LoadU(d, scores + k), largest);
  const float found = hn::GetLane(hn::MaxOfLanes(d, largest));
  // As in SoftmaxStrip: where no score is above -inf, 0 serves as well.
  const float reference = found == kLowest ? 0 : found;
  for (int64_t k = 0; k < count; k += lanes) {
    const KeyF32 difference = hn::Sub(hn::LoadU(d, scores + k), hn::Set(d, reference));
    hn::StoreU(Exp2(d, hn::Mul(difference, hn::Set(d, factor))), d, scores + k);
  }
  float sum = 0;
  for (const float* w = scores; w < scores + count; w += 8) {
    sum += ((w[0] + w[1]) + (w[2] + w[3])) + ((w[4] + w[5]) + (w[6] + w[7]));
  }
  return {.max = sum == 0 ? kLowest : reference, .sum = sum};
}

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triad {

HWY_EXPORT(MultiplyKeysByRows);
HWY_EXPORT(MultiplyValuesByRows);
HWY_EXPORT(SoftmaxOfRow);

void MultiplyKeysByRows(const RowScoreProduct& product) { HWY_DYNAMIC_DISPATCH(MultiplyKeysByRows)(product); }
void MultiplyValuesByRows(const RowValueProduct& product) { HWY_DYNAMIC_DISPATCH(MultiplyValuesByRows)(product); }
RowMaxAndSum SoftmaxOfRow(float* scores, int64_t count, float factor) {
  return HWY_DYNAMIC_DISPATCH(SoftmaxOfRow)(scores, count, factor);
}

}  // namespace triad
#endif  // HWY_ONCE
