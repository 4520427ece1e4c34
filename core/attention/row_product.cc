// Scores: 8 keys at a time, transposed in registers, so that a key is a lane and its sum one chain over dims. Two such
// groups at once, because a chain waits 4 cycles for each step.
//
// Outputs: 8 sums, as many chains as hide the latency of an FMA, stay in registers over all keys of the block: 8
// vectors of dims of one row, or 2 of four rows. Of several kv heads they wait in L1 between 16 keys and the next.
#include "core/attention/row_product.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/base/casts.h"
#include "core/attention/lane_softmax.h"
#include "core/base/check.h"
#include "core/base/dims.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/row_product.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "core/attention/element_io-inl.h"
#include "core/attention/score_math-inl.h"
#include "core/attention/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {

// Keys of one kv head whose values are added before the next head's are.
constexpr int64_t kKeysOfHeads = 16;

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
    LoadColumns([&](int64_t key) HWY_ATTR { return reinterpret_cast<const float*>(keys[key]) + dim; }, columns);
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

// What is multiplied at once of the values: those of a key,
template <class Elements>
struct KeyTerms {
  static constexpr int64_t kKeys = 1;
  static constexpr int64_t kBytes = Elements::kBytes;
  // The dims at byte `offset` of the rows of key `key` and, of pairs, the next, if it is one of `end` keys.
  struct At {
    At(const SourceRows& values, int64_t key, int64_t, int64_t offset) : row(values.row(key) + offset) {}
    F32 Vector(int64_t dim) const { return Elements::Load(row + dim * kBytes, hn::Lanes(F32Vector())); }
    float One() const { return LoadElement(row, Elements::kDType); }
    const std::byte* HWY_RESTRICT row;
  };
  template <class V>
  static HWY_INLINE V Add(V value, V weight, V sum) {
    return hn::MulAdd(value, weight, sum);
  }
};

// or those of two keys of bf16.
struct KeyPairTerms {
  static constexpr int64_t kKeys = 2;
  static constexpr int64_t kBytes = Bf16Elements::kBytes;
  struct At {
    At(const SourceRows& values, int64_t key, int64_t end, int64_t offset)
        : first(values.row(key) + offset), second(key + 1 < end ? values.row(key + 1) + offset : nullptr) {}
    F32 Vector(int64_t dim) const {
      const hn::Rebind<uint32_t, F32Vector> d;
      const hn::Rebind<uint16_t, F32Vector> d16;
      const auto load = [&](const std::byte* row) HWY_ATTR {
        return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(row) + dim));
      };
      auto pair = load(first);
      if (second != nullptr) pair = hn::Or(pair, hn::ShiftLeft<16>(load(second)));
      return hn::BitCast(F32Vector(), pair);
    }
    float One() const {
      uint16_t pair[2] = {};
      std::memcpy(&pair[0], first, kBytes);
      if (second != nullptr) std::memcpy(&pair[1], second, kBytes);
      return absl::bit_cast<float>(pair);
    }
    const std::byte* HWY_RESTRICT first;
    const std::byte* HWY_RESTRICT second;
  };
  template <class V>
  static HWY_INLINE V Add(V value, V weight, V sum) {
    return AddBf16Products(value, weight, sum);
  }
};

// Some keys of a head.
struct HeadKeys {
  int64_t head = 0;
  int64_t begin = 0;  // 0: sums begin
  int64_t end = 0;
};

// Adds to vectors [dim, dim + kVectors) of a head's kRows rows.
template <class Terms, int kRows, int kVectors>
HWY_INLINE void SumValues(const RowValueProduct& product, const HeadKeys& keys, int64_t dim, FetchPace& pace) {
  const F32Vector d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* HWY_RESTRICT weights = product.weights + keys.head * kRows * product.weight_stride;
  float* HWY_RESTRICT outputs = product.output + keys.head * kRows * product.output_stride + dim;
  F32 sums[kRows][kVectors];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = keys.begin == 0 ? hn::Zero(d) : hn::LoadU(d, outputs + r * product.output_stride + v * lanes);
    }
  }
  const int64_t offset = keys.head * product.heads.stride_bytes + dim * Terms::kBytes;
  for (int64_t key = keys.begin; key < keys.end; key += Terms::kKeys) {
    pace.Step();
    const typename Terms::At values(product.values, key, keys.end, offset);
    F32 vectors[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) vectors[v] = values.Vector(v * lanes);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const F32 weight = hn::Set(d, weights[r * product.weight_stride + key / Terms::kKeys]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = Terms::Add(vectors[v], weight, sums[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    float* output = outputs + r * product.output_stride;
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, output + v * lanes);
  }
}

// One dim, which no vector takes.
template <class Terms>
void SumValuesOfDim(const RowValueProduct& product, const HeadKeys& keys, int64_t row, int64_t dim) {
  const hn::CappedTag<float, 1> one;  // the vectors' own multiply-add, fused or not
  float* output = product.output + (keys.head * product.rows + row) * product.output_stride + dim;
  const float* weights = product.weights + (keys.head * product.rows + row) * product.weight_stride;
  const int64_t offset = keys.head * product.heads.stride_bytes + dim * Terms::kBytes;
  auto sum = keys.begin == 0 ? hn::Zero(one) : hn::Set(one, *output);
  for (int64_t key = keys.begin; key < keys.end; key += Terms::kKeys) {
    const typename Terms::At values(product.values, key, keys.end, offset);
    sum = Terms::Add(hn::Set(one, values.One()), hn::Set(one, weights[key / Terms::kKeys]), sum);
  }
  *output = hn::GetLane(sum);
}

// As many whole groups of kVectors vectors of dims as there are, from `dim` on, then smaller groups. Returns the first
// dim that is left, fewer than a vector before the end.
template <class Terms, int kRows, int kVectors>
HWY_INLINE int64_t SumVectors(const RowValueProduct& product, const HeadKeys& keys, int64_t dim, FetchPace& pace) {
  constexpr int64_t kStep = kVectors * hn::MaxLanes(F32Vector());
  for (; dim + kStep <= product.values.dims; dim += kStep) {
    SumValues<Terms, kRows, kVectors>(product, keys, dim, pace);
  }
  if constexpr (kVectors > 1) dim = SumVectors<Terms, kRows, kVectors / 2>(product, keys, dim, pace);
  return dim;
}

// Groups that SumVectors makes of so many dims: whole ones, and one for each smaller size that is needed.
template <int kVectors>
constexpr int64_t GroupsOf(int64_t dims) {
  const int64_t vectors = dims / static_cast<int64_t>(hn::MaxLanes(F32Vector()));
  int64_t groups = vectors / kVectors;
  for (int64_t rest = vectors % kVectors; rest != 0; rest &= rest - 1) ++groups;
  return groups;
}

template <class Terms, int kRows>
void MultiplyValuesOf(const RowValueProduct& product) {
  constexpr int kVectors = kRows == 1 ? 8 : kRows == 2 ? 4 : 2;
  const int64_t count = product.values.count;
  const int64_t step = product.heads.count == 1 ? count : kKeysOfHeads;
  FetchPace pace(product.ahead, /*parts=*/1,
                 product.heads.count * CeilDiv(count, Terms::kKeys) * GroupsOf<kVectors>(product.values.dims));
  for (int64_t key = 0; key < count; key += step) {
    for (int64_t head = 0; head < product.heads.count; ++head) {
      const HeadKeys keys = {.head = head, .begin = key, .end = std::min(key + step, count)};
      int64_t dim = SumVectors<Terms, kRows, kVectors>(product, keys, /*dim=*/0, pace);
      for (; dim < product.values.dims; ++dim) {
        for (int64_t row = 0; row < kRows; ++row) SumValuesOfDim<Terms>(product, keys, row, dim);
      }
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
  WithRows(product.rows, [&](auto rows) HWY_ATTR {
    if (product.bf16_pairs) return MultiplyKeysOf<PairTerms, rows>(product);
    WithElements(product.keys.dtype,
                 [&](auto elements) HWY_ATTR { MultiplyKeysOf<DimTerms<decltype(elements)>, rows>(product); });
  });
}

void MultiplyValuesByRows(const RowValueProduct& product) {
  WithRows(product.rows, [&](auto rows) HWY_ATTR {
    if (product.bf16_pairs) return MultiplyValuesOf<KeyPairTerms, rows>(product);
    WithElements(product.values.dtype,
                 [&](auto elements) HWY_ATTR { MultiplyValuesOf<KeyTerms<decltype(elements)>, rows>(product); });
  });
}

RowMaxAndSum SoftmaxOfRow(float* HWY_RESTRICT scores, int64_t count, float factor) {
  const RowLanes d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  RowF32 largest = hn::Set(d, kLowest);
  for (int64_t k = 0; k < count; k += lanes) largest = hn::Max(hn::LoadU(d, scores + k), largest);
  const float found = hn::GetLane(hn::MaxOfLanes(d, largest));
  // As in SoftmaxStrip: where no score is above -inf, 0 serves as well.
  const float reference = found == kLowest ? 0 : found;
  for (int64_t k = 0; k < count; k += lanes) {
    const RowF32 difference = hn::Sub(hn::LoadU(d, scores + k), hn::Set(d, reference));
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
void PairWeightsOfRow(float* weights, int64_t count) {
  for (int64_t key = 0; key < count; key += 2) {
    const uint32_t first = absl::bit_cast<uint32_t>(weights[key]) + kHalfBf16;
    const uint32_t second = absl::bit_cast<uint32_t>(weights[key + 1]) + kHalfBf16;
    weights[key / 2] = absl::bit_cast<float>(first >> 16 | (second & 0xffff0000u));
  }
}
void MultiplyValuesByRows(const RowValueProduct& product) { HWY_DYNAMIC_DISPATCH(MultiplyValuesByRows)(product); }
RowMaxAndSum SoftmaxOfRow(float* scores, int64_t count, float factor) {
  return HWY_DYNAMIC_DISPATCH(SoftmaxOfRow)(scores, count, factor);
}

}  // namespace triad
#endif  // HWY_ONCE
