#include "core/attention/lane_softmax.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/lane_softmax.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "core/attention/element_io-inl.h"
#include "core/attention/score_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

void HideScores(const ScoreStrip& strip, const HiddenKeys& hidden) {
  const F32Vector d;
  const hn::Rebind<int32_t, F32Vector> di32;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto lowest = hn::Set(d, kLowest);
  for (int64_t lane = 0; lane < strip.width; lane += lanes) {
    const auto begin = hn::Load(di32, hidden.begin + lane);
    const auto end = hn::Load(di32, hidden.end + lane);
    for (int64_t k = hidden.first; k < hidden.last; ++k) {
      const auto key = hn::Set(di32, static_cast<int32_t>(k));
      const auto is_visible = hn::RebindMask(d, hn::AndNot(hn::Gt(begin, key), hn::Gt(end, key)));
      float* score = strip.scores + k * strip.width + lane;
      hn::Store(hn::IfThenElse(is_visible, hn::Load(d, score), lowest), d, score);
    }
  }
}

// The largest of each lane's scores; NaN are passed over (max returns its second operand for them).
HWY_INLINE F32 MaxOfKeys(const float* HWY_RESTRICT scores, int64_t keys, int64_t stride) {
  const F32Vector d;
  F32 max0 = hn::Set(d, kLowest);
  F32 max1 = max0, max2 = max0, max3 = max0;  // four, to hide the latency of max
  for (int64_t k = 0; k < keys; k += 4) {
    max0 = hn::Max(hn::Load(d, scores + k * stride), max0);
    max1 = hn::Max(hn::Load(d, scores + (k + 1) * stride), max1);
    max2 = hn::Max(hn::Load(d, scores + (k + 2) * stride), max2);
    max3 = hn::Max(hn::Load(d, scores + (k + 3) * stride), max3);
  }
  return hn::Max(hn::Max(max0, max1), hn::Max(max2, max3));
}

// Scores become weights; returns their sums.
HWY_INLINE F32 WeighKeys(float* HWY_RESTRICT scores, int64_t keys, int64_t stride, F32 max, float factor) {
  const F32Vector d;
  const F32 scale = hn::Set(d, factor);
  F32 sum = hn::Zero(d);
  for (int64_t k = 0; k < keys; k += 8) {
    F32 tree[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      float* HWY_RESTRICT score = scores + (k + i) * stride;
      tree[i] = Exp2(d, hn::Mul(hn::Sub(hn::Load(d, score), max), scale));
      hn::Store(tree[i], d, score);
      // As soon as both halves of a node are there: few registers.
      if (i % 2 == 1) tree[i - 1] = hn::Add(tree[i - 1], tree[i]);
      if (i % 4 == 3) tree[i - 3] = hn::Add(tree[i - 3], tree[i - 1]);
    }
    sum = hn::Add(sum, hn::Add(tree[0], tree[4]));
  }
  return sum;
}

// Merges maxima and sums of later keys into those of `lane` and the next, and sets their keep and add.
HWY_INLINE void MergeState(F32 max, F32 sum, F32 factor, const LaneState& state, int64_t lane) {
  const F32Vector d;
  const F32 lowest = hn::Set(d, kLowest);
  const F32 total_max = hn::Load(d, state.max + lane);
  const F32 merged_max = hn::IfThenElse(hn::Gt(max, total_max), max, total_max);
  const F32 keep =
      hn::IfThenZeroElse(hn::Eq(total_max, lowest), Exp2(d, hn::Mul(hn::Sub(total_max, merged_max), factor)));
  const F32 add = hn::IfThenZeroElse(hn::Eq(max, lowest), Exp2(d, hn::Mul(hn::Sub(max, merged_max), factor)));
  const F32 kept_sum = hn::Mul(hn::Load(d, state.sum + lane), keep);
  hn::Store(merged_max, d, state.max + lane);
  hn::Store(hn::MulAdd(sum, add, kept_sum), d, state.sum + lane);
  hn::Store(keep, d, state.keep + lane);
  hn::Store(add, d, state.add + lane);
}

void SoftmaxStrip(const ScoreStrip& strip, const LaneState& state) {
  const F32Vector d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const F32 lowest = hn::Set(d, kLowest);
  const F32 factor = hn::Set(d, strip.factor);
  for (int64_t lane = 0; lane < strip.width; lane += lanes) {
    const F32 found = MaxOfKeys(strip.scores + lane, strip.keys, strip.width);
    // Where no visible score is above -inf, 0 serves as well: hidden ones still become 2^-inf = 0, and NaN stays NaN.
    const F32 reference = hn::IfThenZeroElse(hn::Eq(found, lowest), found);
    const F32 sum = WeighKeys(strip.scores + lane, strip.keys, strip.width, reference, strip.factor);
    const F32 max = hn::IfThenElse(hn::Eq(sum, hn::Zero(d)), lowest, reference);  // a NaN sum counts as seen
    MergeState(max, sum, factor, state, lane);
  }
}

void PairWeights(const ScoreStrip& strip) {
  const hn::Rebind<uint32_t, F32Vector> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto half = hn::Set(d, kHalfBf16);
  const auto upper = hn::Set(d, 0xffff0000u);
  const auto* const weights = reinterpret_cast<const uint32_t*>(strip.scores);
  auto* const pairs = reinterpret_cast<uint32_t*>(strip.scores);
  for (int64_t key = 0; key < strip.keys; key += 2) {
    for (int64_t lane = 0; lane < strip.width; lane += lanes) {
      const auto first = hn::Add(hn::Load(d, weights + key * strip.width + lane), half);
      const auto second = hn::Add(hn::Load(d, weights + (key + 1) * strip.width + lane), half);
      hn::Store(hn::Or(hn::ShiftRight<16>(first), hn::And(second, upper)), d, pairs + key / 2 * strip.width + lane);
    }
  }
}

void MergeStrip(const StripSums& sums, int64_t dims, int64_t width, float factor, const StripSums& total) {
  const F32Vector d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t lane = 0; lane < width; lane += lanes) {
    MergeState(hn::Load(d, sums.state.max + lane), hn::Load(d, sums.state.sum + lane), hn::Set(d, factor), total.state,
               lane);
    const F32 keep = hn::Load(d, total.state.keep + lane);
    const F32 add = hn::Load(d, total.state.add + lane);
    for (int64_t i = lane; i < dims * width; i += width) {
      const F32 kept = hn::Mul(hn::Load(d, total.output + i), keep);
      hn::Store(hn::MulAdd(hn::Load(d, sums.output + i), add, kept), d, total.output + i);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triad {

HWY_EXPORT(HideScores);
HWY_EXPORT(SoftmaxStrip);
HWY_EXPORT(PairWeights);
HWY_EXPORT(MergeStrip);

void HideScores(const ScoreStrip& strip, const HiddenKeys& hidden) { HWY_DYNAMIC_DISPATCH(HideScores)(strip, hidden); }
void SoftmaxStrip(const ScoreStrip& strip, const LaneState& state) { HWY_DYNAMIC_DISPATCH(SoftmaxStrip)(strip, state); }
void PairWeights(const ScoreStrip& strip) { HWY_DYNAMIC_DISPATCH(PairWeights)(strip); }
void MergeStrip(const StripSums& sums, int64_t dims, int64_t width, float factor, const StripSums& total) {
  HWY_DYNAMIC_DISPATCH(MergeStrip)(sums, dims, width, factor, total);
}

}  // namespace triad
#endif  // HWY_ONCE
