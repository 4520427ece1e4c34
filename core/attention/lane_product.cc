// A register tile is some rows of the result (keys, or dims of the values) by all vectors of a strip. For each step of
// what is summed over it loads the strip's vectors, broadcasts one number per row, and multiplies them into sums that
// stay in registers to the end. AVX2 has 16 registers: 4 rows x 3 vectors leave 3 for the strip and 1 for the
// broadcast, and make 12 independent chains where 8 hide the latency of an FMA (4 cycles, 2 per cycle). AVX-512 has 32:
// 8 x 3. Narrower strips have 8 chains at least.
//
// What a tile touches stays in L1, for 128 keys and 64 dims on AVX2: queries 6 KiB, scores 12 KiB, a line each of 128
// values 8 KiB. The tile alone reaches 0.96 to 0.98 of the FMA peak there.
#include "core/attention/lane_product.h"

#include <algorithm>

#include "core/base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/lane_product.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "core/attention/element_io-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {

constexpr int64_t kLanes = hn::MaxLanes(F32Vector());
constexpr int64_t kUnit = std::max<int64_t>(kLanes, 8);
constexpr int64_t kMostUnits = kLanes >= 8 ? 3 : 1;
// Powers of two, so that the usual numbers of keys and dims leave no rest.
constexpr int RowsFor(int vectors) { return vectors == 1 || HWY_TARGET <= HWY_AVX3 ? 8 : 4; }

StripShape Shape() { return {.unit = kUnit, .most_units = kMostUnits, .multiplies_bf16 = HWY_TARGET <= HWY_AVX3}; }

// What a step adds to a sum.
struct F32Product {
  static HWY_INLINE F32 Add(F32 a, F32 b, F32 sum) { return hn::MulAdd(a, b, sum); }
};
struct Bf16PairProduct {
  static HWY_INLINE F32 Add(F32 a, F32 b, F32 sum) { return AddBf16Products(a, b, sum); }
};

// sums[row][vector] = sum over steps of left[row * row_stride + step * step_stride] * right[step][vector].
template <class Product, int kRows, int kVectors>
HWY_INLINE void SumProducts(const float* HWY_RESTRICT left, int64_t row_stride, int64_t step_stride, int64_t steps,
                            const float* HWY_RESTRICT right, F32 (&sums)[kRows][kVectors]) {
  const F32Vector d;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
#pragma GCC unroll 4  // 1.7 instructions per FMA rather than 1.9, which counts when a neighbour shares the core
  for (int64_t step = 0; step < steps; ++step) {
    F32 vectors[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) vectors[v] = hn::Load(d, right + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const F32 element = hn::Set(d, left[r * row_stride]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sums[r][v] = Product::Add(element, vectors[v], sums[r][v]);
    }
    left += step_stride;
    right += kVectors * kLanes;
  }
}

template <class Product, int kRows, int kVectors>
HWY_INLINE void ScoreTile(const ScoreProduct& product, int64_t key) {
  const F32Vector d;
  F32 sums[kRows][kVectors];
  SumProducts<Product>(product.keys + key * product.key_stride, product.key_stride, 1, product.dims, product.queries,
                       sums);
  float* HWY_RESTRICT scores = product.scores + key * kVectors * kLanes;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::Store(sums[r][v], d, scores + (r * kVectors + v) * kLanes);
  }
}

template <class Product, int kRows, int kVectors>
HWY_INLINE void OutputTile(const ValueProduct& product, int64_t dim) {
  const F32Vector d;
  F32 sums[kRows][kVectors];
  SumProducts<Product>(product.values + dim, 1, product.value_stride, product.key_count, product.weights, sums);
  float* HWY_RESTRICT output = product.output + dim * kVectors * kLanes;
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const F32 keep = hn::Load(d, product.keep + v * kLanes);
    const F32 add = hn::Load(d, product.add + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      float* HWY_RESTRICT row = output + (r * kVectors + v) * kLanes;
      hn::Store(hn::MulAdd(sums[r][v], add, hn::Mul(hn::Load(d, row), keep)), d, row);
    }
  }
}

template <class Product, int kVectors>
HWY_INLINE void ScoreRows(const ScoreProduct& product) {
  constexpr int kRows = RowsFor(kVectors);
  FetchPace pace(product.ahead, /*parts=*/2, product.key_count / kRows);
  int64_t key = 0;
  for (; key + kRows <= product.key_count; key += kRows) {
    pace.Step();
    ScoreTile<Product, kRows, kVectors>(product, key);
  }
  for (; key < product.key_count; ++key) ScoreTile<Product, 1, kVectors>(product, key);
}

template <class Product, int kVectors>
HWY_INLINE void OutputRows(const ValueProduct& product) {
  constexpr int kRows = RowsFor(kVectors);
  FetchPace pace(product.ahead, /*parts=*/1, product.dims / kRows);
  int64_t dim = 0;
  for (; dim + kRows <= product.dims; dim += kRows) {
    pace.Step();
    OutputTile<Product, kRows, kVectors>(product, dim);
  }
  for (; dim < product.dims; ++dim) OutputTile<Product, 1, kVectors>(product, dim);
}

// Calls `multiply` with the kind of products, and with the vectors of a strip as a constant.
template <class Multiply>
HWY_INLINE void WithProductAndVectors(bool bf16_pairs, int64_t width, const Multiply& multiply) {
  constexpr int kUnitVectors = kUnit / kLanes;
  const auto with_vectors = [&](auto product) HWY_ATTR {
    if (width == kUnit) return multiply(product, std::integral_constant<int, kUnitVectors>());
    if constexpr (kMostUnits == 3) {
      if (width == 2 * kUnit) return multiply(product, std::integral_constant<int, 2 * kUnitVectors>());
      if (width == 3 * kUnit) return multiply(product, std::integral_constant<int, 3 * kUnitVectors>());
    }
    TRIAD_CHECK(false, "a strip is one to three units wide");
  };
  if (bf16_pairs) return with_vectors(Bf16PairProduct());
  with_vectors(F32Product());
}

void MultiplyKeys(const ScoreProduct& product) {
  WithProductAndVectors(product.bf16_pairs, product.width,
                        [&](auto kind, auto vectors) HWY_ATTR { ScoreRows<decltype(kind), vectors>(product); });
}

void AddValues(const ValueProduct& product) {
  WithProductAndVectors(product.bf16_pairs, product.width,
                        [&](auto kind, auto vectors) HWY_ATTR { OutputRows<decltype(kind), vectors>(product); });
}

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triad {

HWY_EXPORT(Shape);
HWY_EXPORT(MultiplyKeys);
HWY_EXPORT(AddValues);

StripShape StripShapeOf(InstructionSet isa) {
  StripShape shape = HWY_DYNAMIC_DISPATCH(Shape)();
  shape.multiplies_bf16 &= isa >= InstructionSet::kAvx512Bf16;
  return shape;
}
void MultiplyKeys(const ScoreProduct& product) { HWY_DYNAMIC_DISPATCH(MultiplyKeys)(product); }
void AddValues(const ValueProduct& product) { HWY_DYNAMIC_DISPATCH(AddValues)(product); }

}  // namespace triad
#endif  // HWY_ONCE
