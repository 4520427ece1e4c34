// Cap and ALiBi go down the lanes as they are. Bias and keep lie along rows: 4 entries of 8 rows at a time are
// transposed in registers and added. An entry that hides is -inf there, so that keep needs no pass of its own.
#include "core/attention/lane_modifiers.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/attention/lane_modifiers.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "core/attention/element_io-inl.h"
#include "core/attention/score_math-inl.h"
#include "core/attention/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {

constexpr int64_t kEntriesAtOnce = 64;  // of a row: 8 rows of them are 2 KiB of L1; a multiple of 4

// Scores of all lanes, one after another.
template <class Rule>
HWY_INLINE void ForEachScore(const ScoreStrip& strip, const Rule& rule) {
  const RowLanes d;
  for (int64_t i = 0; i < strip.keys * strip.width; i += kRowsAtOnce) {
    hn::Store(rule(hn::Load(d, strip.scores + i)), d, strip.scores + i);
  }
}

void SubtractDistances(const RowModifiers* rows, int64_t first_key, float scale, const ScoreStrip& strip) {
  const RowLanes d;
  for (int64_t lane = 0; lane < strip.width; lane += kRowsAtOnce) {
    HWY_ALIGN float slopes[kRowsAtOnce];
    HWY_ALIGN float distances[kRowsAtOnce];
    for (int64_t i = 0; i < kRowsAtOnce; ++i) {
      slopes[i] = *rows[lane + i].alibi_slope;
      distances[i] = static_cast<float>(rows[lane + i].first_distance - first_key);
    }
    const RowF32 slope = hn::Load(d, slopes);
    const RowF32 distance = hn::Load(d, distances);
    for (int64_t k = 0; k < strip.keys; ++k) {
      float* const score = strip.scores + k * strip.width + lane;
      const RowF32 from_key = hn::Sub(distance, hn::Set(d, static_cast<float>(k)));
      hn::Store(MinusDistance(d, hn::Load(d, score), scale, from_key, slope), d, score);
    }
  }
}

// What is added to `count` scores of a row, widened: its bias; -inf where keep hides.
template <class Elements>
void WidenEntries(const std::byte* bias, const std::byte* keep, int64_t count, float* added) {
  const F32Vector d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += lanes) {
    const int64_t some = std::min(lanes, count - i);
    F32 entry = bias == nullptr ? hn::Zero(d) : Elements::Load(bias + i * Elements::kBytes, some);
    if (keep != nullptr) entry = hn::IfThenElse(IsZero(keep + i, some), MinusInfinity(d), entry);
    hn::StoreU(entry, d, added + i);
  }
}

template <class Elements>
void AddEntries(const RowModifiers* rows, int64_t first_key, float scale, const ScoreStrip& strip) {
  const RowLanes d;
  HWY_ALIGN float widened[kRowsAtOnce][kEntriesAtOnce + kMaxLanes];
  for (int64_t lane = 0; lane < strip.width; lane += kRowsAtOnce) {
    for (int64_t first = 0; first < strip.keys; first += kEntriesAtOnce) {
      const int64_t count = std::min(kEntriesAtOnce, strip.keys - first);
      for (int64_t i = 0; i < kRowsAtOnce; ++i) {
        const RowModifiers& row = rows[lane + i];
        const int64_t key = first_key + first;
        const std::byte* bias = row.bias == nullptr ? nullptr : row.bias + key * Elements::kBytes;
        const std::byte* keep = row.keep == nullptr ? nullptr : row.keep + key;
        WidenEntries<Elements>(bias, keep, count, widened[i]);
      }
      for (int64_t k = 0; k < count; k += 4) {
        RowF32 columns[4];
        const auto row = [&](int64_t i) HWY_ATTR { return widened[i] + k; };
        LoadColumns(d, row, columns);
        float* score = strip.scores + (first + k) * strip.width + lane;
        for (int64_t i = 0; i < std::min<int64_t>(4, count - k); ++i, score += strip.width) {
          hn::Store(PlusBias(d, hn::Load(d, score), scale, columns[i]), d, score);
        }
      }
    }
  }
}

void ModifyStrip(const RowModifiers* rows, int64_t first_key, const ScoreStrip& strip) {
  const RowLanes d;
  const RowModifiers& rules = rows[0];
  float scale = rules.scale;  // 1 once some rule has applied it
  if (rules.logit_softcap > 0) {
    ForEachScore(strip, [&](RowF32 score) HWY_ATTR { return Capped(d, score, scale, rules.logit_softcap); });
    scale = 1;
  }
  if (rules.alibi_slope) {
    SubtractDistances(rows, first_key, scale, strip);
    scale = 1;
  }
  if (rules.bias != nullptr || rules.keep != nullptr) {
    return WithElements(rules.bias_dtype,
                        [&](auto elements) HWY_ATTR { AddEntries<decltype(elements)>(rows, first_key, scale, strip); });
  }
  if (scale != 1) {
    ForEachScore(strip, [&](RowF32 score) HWY_ATTR { return hn::Mul(score, hn::Set(d, scale)); });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triad {
HWY_EXPORT(ModifyStrip);
void ModifyStrip(const RowModifiers* rows, int64_t first_key, const ScoreStrip& strip) {
  HWY_DYNAMIC_DISPATCH(ModifyStrip)(rows, first_key, strip);
}
}  // namespace triad
#endif  // HWY_ONCE
