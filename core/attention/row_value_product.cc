// Outputs: 8 sums, as many chains as hide the latency of an FMA, stay in registers over 16 keys: 8 vectors of dims of
// one row, or 2 of four rows. Between those and the next they wait in L1. Values of one head are read in order before
// they are used, a page of 64 dims of f32 at a time, unless they are fetched ahead.
#include "core/attention/row_product.h"

#include <algorithm>
#include <cstring>

#include "absl/base/casts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/row_value_product.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "core/attention/element_io-inl.h"
#include "core/attention/row_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {

// Keys of one kv head whose values are added before the next head's are: of one head alone, a page of 64 dims. Even,
// for pairs.
constexpr int64_t kKeysAtOnce = 16;

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
  FetchPace pace(product.ahead, /*parts=*/1,
                 product.heads.count * CeilDiv(count, Terms::kKeys) * GroupsOf<kVectors>(product.values.dims));
  for (int64_t key = 0; key < count; key += kKeysAtOnce) {
    if (product.ahead == nullptr) ReadInOrder(product.values, key, key + kKeysAtOnce);
    for (int64_t head = 0; head < product.heads.count; ++head) {
      const HeadKeys keys = {.head = head, .begin = key, .end = std::min(key + kKeysAtOnce, count)};
      int64_t dim = SumVectors<Terms, kRows, kVectors>(product, keys, /*dim=*/0, pace);
      for (; dim < product.values.dims; ++dim) {
        for (int64_t row = 0; row < kRows; ++row) SumValuesOfDim<Terms>(product, keys, row, dim);
      }
    }
  }
}

void MultiplyValuesByRows(const RowValueProduct& product) {
  WithRows(product.rows, [&](auto rows) HWY_ATTR {
    if (product.bf16_pairs) return MultiplyValuesOf<KeyPairTerms, rows>(product);
    WithElements(product.values.dtype,
                 [&](auto elements) HWY_ATTR { MultiplyValuesOf<KeyTerms<decltype(elements)>, rows>(product); });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triad {

HWY_EXPORT(MultiplyValuesByRows);

void MultiplyValuesByRows(const RowValueProduct& product) { HWY_DYNAMIC_DISPATCH(MultiplyValuesByRows)(product); }

}  // namespace triad
#endif  // HWY_ONCE
