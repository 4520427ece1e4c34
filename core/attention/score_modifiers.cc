// One loop per rule, so that none branches on the others; a row of a tile (256 scores, 1 KiB) stays in L1 between them.
#include "core/attention/score_modifiers.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/score_modifiers.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "core/attention/element_io-inl.h"
#include "core/attention/score_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {

// scores[j] = rule(scores[j], j) for whole vectors; the rest goes through a buffer, so that nothing past `count` is
// touched.
template <class Rule>
HWY_INLINE void ForEachVector(float* scores, int64_t count, const Rule& rule) {
  const F32Vector d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + lanes <= count; j += lanes) hn::StoreU(rule(hn::LoadU(d, scores + j), j, lanes), d, scores + j);
  if (j == count) return;
  HWY_ALIGN float tail[16] = {};
  std::memcpy(tail, scores + j, static_cast<size_t>(count - j) * sizeof(float));
  hn::Store(rule(hn::Load(d, tail), j, count - j), d, tail);
  std::memcpy(scores + j, tail, static_cast<size_t>(count - j) * sizeof(float));
}

struct ScaleRule {
  float scale;
  HWY_INLINE F32 operator()(F32 score, int64_t, int64_t) const { return hn::Mul(score, hn::Set(F32Vector(), scale)); }
};

struct CapRule {
  float scale;
  float cap;
  HWY_INLINE F32 operator()(F32 score, int64_t, int64_t) const { return Capped(F32Vector(), score, scale, cap); }
};

struct AlibiRule {
  float scale;
  float slope;
  float first_distance;  // exact: positions are below 2^24
  HWY_INLINE F32 operator()(F32 score, int64_t j, int64_t) const {
    const F32Vector d;
    const F32 distance = hn::Sub(hn::Set(d, first_distance - static_cast<float>(j)), hn::Iota(d, 0));
    return MinusDistance(d, score, scale, distance, hn::Set(d, slope));
  }
};

template <class Elements>
struct BiasRule {
  float scale;
  const std::byte* bias;
  HWY_INLINE F32 operator()(F32 score, int64_t j, int64_t count) const {
    return PlusBias(F32Vector(), score, scale, Elements::Load(bias + j * Elements::kBytes, count));
  }
};

struct KeepRule {
  const std::byte* keep;
  HWY_INLINE F32 operator()(F32 score, int64_t j, int64_t count) const {
    const F32Vector d;
    return hn::IfThenElse(IsZero(keep + j, count), MinusInfinity(d), score);
  }
};

HWY_INLINE void Fetch(const std::byte* address, int64_t bytes) {
  for (int64_t offset = 0; offset < bytes; offset += 64) hwy::Prefetch(address + offset);
}

void ModifyScores(const RowModifiers& modifiers, float* scores, int64_t count) {
  if (modifiers.bias_ahead_bytes != 0) {
    Fetch(modifiers.bias + modifiers.bias_ahead_bytes, count * ByteSize(modifiers.bias_dtype));
  }
  if (modifiers.keep_ahead_bytes != 0) Fetch(modifiers.keep + modifiers.keep_ahead_bytes, count);
  float scale = modifiers.scale;  // 1 once some rule has applied it
  if (modifiers.logit_softcap > 0) {
    const float cap = modifiers.logit_softcap;
    ForEachVector(scores, count, CapRule{scale, cap});
    scale = 1;
  }
  if (modifiers.alibi_slope) {
    const float first_distance = static_cast<float>(modifiers.first_distance);
    ForEachVector(scores, count, AlibiRule{scale, *modifiers.alibi_slope, first_distance});
    scale = 1;
  }
  if (modifiers.bias != nullptr) {
    WithElements(modifiers.bias_dtype, [&](auto elements) HWY_ATTR {
      ForEachVector(scores, count, BiasRule<decltype(elements)>{scale, modifiers.bias});
    });
    scale = 1;
  }
  if (scale != 1) ForEachVector(scores, count, ScaleRule{scale});
  if (modifiers.keep != nullptr) ForEachVector(scores, count, KeepRule{modifiers.keep});
}

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triad {
HWY_EXPORT(ModifyScores);
void ModifyScores(const RowModifiers& modifiers, float* scores, int64_t count) {
  HWY_DYNAMIC_DISPATCH(ModifyScores)(modifiers, scores, count);
}
}  // namespace triad
#endif  // HWY_ONCE
