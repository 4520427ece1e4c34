#include "core/attention/row_scores.h"

#include <cmath>
#include <numbers>

#include "core/attention/item_plan.h"

namespace triad {
namespace {

constexpr int64_t kRowsAhead = 4;  // of bias and keep: 1 KiB each, fetched some 0.3 us before they are used

}  // namespace

RowScores::RowScores(const AttentionProblem& problem, const WorkItem& item)
    : problem_(problem), sequence_(problem.sequences[item.sequence]), item_(item) {
  const float scale = std::fabs(problem.scale);
  // Softmax multiplies hidden scores, -inf, by its factor, which therefore must be neither 0 nor infinite.
  const bool is_plain_scale = scale > 0x1p-64f && scale < 0x1p64f;
  const bool scales_early =
      problem.logit_softcap > 0 || !problem.alibi_slopes.empty() || problem.bias.has_value() || !is_plain_scale;
  has_modifiers_ = scales_early || problem.keep.has_value();
  modifier_scale_ = scales_early ? scale : 1;
  factor_ = (scales_early ? 1 : scale) * std::numbers::log2e_v<float>;
}

void RowScores::Modify(int64_t row, int64_t key, int64_t next_rows, float* scores, int64_t count) const {
  RowModifiers modifiers = ModifiersOf(row, key);
  if (next_rows >= kRowsAhead) {
    // The row's entries of bias and keep are too few for the hardware to see a pattern.
    const RowModifiers ahead = ModifiersOf(row + kRowsAhead, key);
    if (problem_.bias) modifiers.bias_ahead_bytes = ahead.bias - modifiers.bias;
    if (problem_.keep) modifiers.keep_ahead_bytes = ahead.keep - modifiers.keep;
  }
  ModifyScores(modifiers, scores, count);
}

RowModifiers RowScores::ModifiersOf(int64_t row, int64_t key) const {
  const RowPlace place = PlaceOfRow(problem_, item_, row);
  const auto entry = [&](const ScoreRows& rows, int64_t begin) {
    const int64_t index = begin + place.head * rows.head_stride + place.query * rows.query_stride + key;
    return rows.data + index * ByteSize(rows.dtype);
  };
  RowModifiers modifiers{.scale = modifier_scale_,
                         .logit_softcap = problem_.logit_softcap,
                         .first_distance = place.query + sequence_.query_shift - key};
  if (!problem_.alibi_slopes.empty()) modifiers.alibi_slope = problem_.alibi_slopes[place.head];
  if (problem_.bias) {
    modifiers.bias = entry(*problem_.bias, sequence_.bias_begin);
    modifiers.bias_dtype = problem_.bias->dtype;
  }
  if (problem_.keep) modifiers.keep = entry(*problem_.keep, sequence_.keep_begin);
  return modifiers;
}

}  // namespace triad
