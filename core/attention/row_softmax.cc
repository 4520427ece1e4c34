// One row's scores become weights in place, all sums in the order of lane_softmax.h.
#include "core/attention/row_product.h"

#include <limits>

#include "absl/base/casts.h"
#include "core/attention/lane_softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/row_softmax.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "core/attention/score_math-inl.h"
#include "core/attention/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {

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

HWY_EXPORT(SoftmaxOfRow);

RowMaxAndSum SoftmaxOfRow(float* scores, int64_t count, float factor) {
  return HWY_DYNAMIC_DISPATCH(SoftmaxOfRow)(scores, count, factor);
}

void PairWeightsOfRow(float* weights, int64_t count) {
  for (int64_t key = 0; key < count; key += 2) {
    const uint32_t first = absl::bit_cast<uint32_t>(weights[key]) + kHalfBf16;
    const uint32_t second = absl::bit_cast<uint32_t>(weights[key + 1]) + kHalfBf16;
    weights[key / 2] = absl::bit_cast<float>(first >> 16 | (second & 0xffff0000u));
  }
}

}  // namespace triad
#endif  // HWY_ONCE
