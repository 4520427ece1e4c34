// Each loop goes over one row of a tile: 256 scores are 1 KiB, so the second pass finds the row in L1.
#include "core/attention/score_tile.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/score_tile.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "core/attention/element_io-inl.h"
#include "core/attention/score_math-inl.h"
#include "core/base/dims.h"

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct RowSoftmax {
  float max = -kInfinity;
  float sum = 0;
};

// Columns of one row: [begin, end) are visible, whole vectors cover [first, last).
struct RowColumns {
  int64_t begin, end, first, last;
};

HWY_INLINE float MaxOfRow(const float* HWY_RESTRICT row, RowColumns columns) {
  const F32Vector d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto max0 = hn::Set(d, -kInfinity);
  auto max1 = max0, max2 = max0, max3 = max0;  // four, to hide the latency of max
  int64_t j = columns.first;
  for (; j + 4 * lanes <= columns.last; j += 4 * lanes) {
    max0 = hn::Max(hn::LoadU(d, row + j), max0);
    max1 = hn::Max(hn::LoadU(d, row + j + lanes), max1);
    max2 = hn::Max(hn::LoadU(d, row + j + 2 * lanes), max2);
    max3 = hn::Max(hn::LoadU(d, row + j + 3 * lanes), max3);
  }
  for (; j < columns.last; j += lanes) max0 = hn::Max(hn::LoadU(d, row + j), max0);
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(max0, max1), hn::Max(max2, max3))));
}

// No visible score is a number above -inf. What is left are weights of 0, or NaN.
RowSoftmax SoftmaxWithoutMax(float* row, RowColumns columns) {
  std::fill(row + columns.first, row + columns.begin, 0.0f);
  std::fill(row + columns.end, row + columns.last, 0.0f);
  int64_t nan_count = 0;
  for (int64_t j = columns.begin; j < columns.end; ++j) {
    if (std::isnan(row[j])) {
      ++nan_count;
    } else {
      row[j] = 0;
    }
  }
  return nan_count == 0 ? RowSoftmax{} : RowSoftmax{.max = 0, .sum = std::numeric_limits<float>::quiet_NaN()};
}

// A NaN among the scores may be lost by max (its result depends on operand order), but not by the sum: 2^NaN is NaN.
RowSoftmax SoftmaxRow(float* HWY_RESTRICT row, RowColumns columns, float factor) {
  const F32Vector d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  std::fill(row + columns.first, row + columns.begin, -kInfinity);
  std::fill(row + columns.end, row + columns.last, -kInfinity);
  const float max = MaxOfRow(row, columns);
  if (max == -kInfinity) return SoftmaxWithoutMax(row, columns);

  const auto max_vector = hn::Set(d, max);
  const auto scale = hn::Set(d, factor);
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  int64_t j = columns.first;
  for (; j + 2 * lanes <= columns.last; j += 2 * lanes) {
    const auto weight0 = Exp2(d, hn::Mul(hn::Sub(hn::LoadU(d, row + j), max_vector), scale));
    const auto weight1 = Exp2(d, hn::Mul(hn::Sub(hn::LoadU(d, row + j + lanes), max_vector), scale));
    sum0 = hn::Add(sum0, weight0);
    sum1 = hn::Add(sum1, weight1);
    hn::StoreU(weight0, d, row + j);
    hn::StoreU(weight1, d, row + j + lanes);
  }
  if (j < columns.last) {
    const auto weight = Exp2(d, hn::Mul(hn::Sub(hn::LoadU(d, row + j), max_vector), scale));
    sum0 = hn::Add(sum0, weight);
    hn::StoreU(weight, d, row + j);
  }
  return {.max = max, .sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)))};
}

void SoftmaxRows(const ScoreTile& tile, const RowState& state) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(F32Vector()));
  for (int64_t r = 0; r < tile.rows; ++r) {
    float* row = tile.scores + r * tile.stride;
    const int64_t begin = tile.begin[r];
    const int64_t end = tile.end[r];
    RowSoftmax result;
    RowColumns columns{.begin = begin, .end = end, .first = 0, .last = 0};
    if (begin < end) {
      columns.first = begin / lanes * lanes;
      columns.last = RoundUp(end, lanes);
      result = SoftmaxRow(row, columns, tile.factor);
    }
    std::fill(row, row + columns.first, 0.0f);
    std::fill(row + columns.last, row + tile.width, 0.0f);
    state.max[r] = result.max;
    state.sum[r] = result.sum;
  }
}

void RoundRowsToBf16(const ScoreTile& tile, uint16_t* HWY_RESTRICT rounded) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    const float* HWY_RESTRICT row = tile.scores + r * tile.stride;
    uint16_t* HWY_RESTRICT out = rounded + r * tile.width;
    for (int64_t j = 0; j < tile.width; ++j) {
      uint32_t bits = 0;
      std::memcpy(&bits, row + j, sizeof(bits));
      // Weights are in [0, 1] or NaN; a NaN keeps its upper bits, made quiet.
      const uint32_t nearest = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
      const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
      out[j] = static_cast<uint16_t>(is_nan ? (bits >> 16) | 0x40 : nearest);
    }
  }
}

void MergeRows(const MergeTile& tile) {
  const F32Vector d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto nothing = hn::Set(d, -kInfinity);
  const auto factor = hn::Set(d, tile.factor);
  float* HWY_RESTRICT keep_factors = tile.factors;
  float* HWY_RESTRICT add_factors = tile.factors + RoundUp(tile.rows, 16);
  for (int64_t r = 0; r < tile.rows; r += lanes) {
    const auto total_max = hn::LoadU(d, tile.total_state.max + r);
    const auto block_max = hn::LoadU(d, tile.block_state.max + r);
    const auto max = hn::IfThenElse(hn::Gt(block_max, total_max), block_max, total_max);
    const auto keep = hn::IfThenZeroElse(hn::Eq(total_max, nothing), Exp2(d, hn::Mul(hn::Sub(total_max, max), factor)));
    const auto add = hn::IfThenZeroElse(hn::Eq(block_max, nothing), Exp2(d, hn::Mul(hn::Sub(block_max, max), factor)));
    const auto total_sum = hn::Mul(hn::LoadU(d, tile.total_state.sum + r), keep);
    const auto block_sum = hn::LoadU(d, tile.block_state.sum + r);
    hn::StoreU(max, d, tile.total_state.max + r);
    hn::StoreU(hn::MulAdd(block_sum, add, total_sum), d, tile.total_state.sum + r);
    hn::StoreU(keep, d, keep_factors + r);
    hn::StoreU(add, d, add_factors + r);
  }
  for (int64_t r = 0; r < tile.rows; ++r) {
    float* HWY_RESTRICT total = tile.total + r * tile.dims;
    const float* HWY_RESTRICT block = tile.block + r * tile.dims;
    const auto keep = hn::Set(d, keep_factors[r]);
    const auto add = hn::Set(d, add_factors[r]);
    for (int64_t i = 0; i < tile.dims; i += lanes) {
      const auto kept = hn::Mul(hn::LoadU(d, total + i), keep);
      hn::StoreU(hn::MulAdd(hn::LoadU(d, block + i), add, kept), d, total + i);
    }
  }
}

void NormalizeWeights(const WeightRow& row) {
  const F32Vector d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, row.factor);
  const auto max = hn::Set(d, row.max);
  const auto scale = hn::Set(d, row.scale);
  int64_t j = 0;
  for (; j + lanes <= row.count; j += lanes) {
    const auto x = hn::Mul(hn::Sub(hn::LoadU(d, row.scores + j), max), factor);
    hn::StoreU(hn::Mul(Exp2(d, x), scale), d, row.scores + j);
  }
  if (j == row.count) return;
  HWY_ALIGN float tail[16] = {};
  const size_t tail_bytes = static_cast<size_t>(row.count - j) * sizeof(float);
  std::byte* address = reinterpret_cast<std::byte*>(row.scores + j);  // bytes: the caller's floats may be unaligned
  std::memcpy(tail, address, tail_bytes);
  const auto x = hn::Mul(hn::Sub(hn::Load(d, tail), max), factor);
  hn::Store(hn::Mul(Exp2(d, x), scale), d, tail);
  std::memcpy(address, tail, tail_bytes);
}

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triad {

HWY_EXPORT(SoftmaxRows);
HWY_EXPORT(RoundRowsToBf16);
HWY_EXPORT(MergeRows);
HWY_EXPORT(NormalizeWeights);

void SoftmaxRows(const ScoreTile& tile, const RowState& state) { HWY_DYNAMIC_DISPATCH(SoftmaxRows)(tile, state); }
void RoundRowsToBf16(const ScoreTile& tile, uint16_t* rounded) { HWY_DYNAMIC_DISPATCH(RoundRowsToBf16)(tile, rounded); }
void MergeRows(const MergeTile& tile) { HWY_DYNAMIC_DISPATCH(MergeRows)(tile); }
void NormalizeWeights(const WeightRow& row) { HWY_DYNAMIC_DISPATCH(NormalizeWeights)(row); }

void CapVectorTargets(InstructionSet isa) {
  // Highway numbers targets so that better ones have lower bits.
  if (isa == InstructionSet::kGeneric) hwy::DisableTargets(2 * HWY_AVX2 - 1);
  if (isa == InstructionSet::kAvx2) hwy::DisableTargets(HWY_AVX2 - 1);
}

}  // namespace triad
#endif  // HWY_ONCE
