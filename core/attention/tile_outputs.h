// What an item writes: its rows of output, lse and weights.
#pragma once

#include <cstdint>

#include "core/attention/attention_kernel.h"
#include "core/attention/item_plan.h"

namespace triad {

// A row when all its keys have been seen.
struct FinishedRow {
  KeyRange keys;                      // from VisibleKeys; empty past query_length
  float max = 0;                      // largest score; -inf: nothing seen
  float sum = 0;                      // NaN: a visible score was NaN or +inf
  float value_scale = 1;              // that the values were multiplied by
  float factor = 1;                   // of ScoreTile
  const float* output = nullptr;      // [v_head_dim rounded up], sum of weight * value
  const float* non_finite = nullptr;  // [v_head_dim rounded up] or null: sum of the visible values that are not finite
};

// Borrows its arguments. Different rows are independent.
class TileOutputs {
 public:
  TileOutputs(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs)
      : problem_(problem), sequence_(problem.sequences[item.sequence]), item_(item), outputs_(outputs) {}

  // Where a row's output is written.
  std::byte* OutputOf(RowPlace place) const;

  // Holds final scores of `count` keys from `key` on where the row's weights will be. Only when weights are asked for.
  void KeepScores(int64_t row, int64_t key, const float* scores, int64_t count);

  // Takes the sink into account, and writes everything of the row.
  void Finish(int64_t row, const FinishedRow& finished);

 private:
  float* WeightsOf(RowPlace place) const;
  void FinishWeights(RowPlace place, const FinishedRow& finished, float scale);
  bool IsHidden(RowPlace place, int64_t key) const;

  const AttentionProblem& problem_;
  const Sequence& sequence_;
  const WorkItem& item_;
  const AttentionOutputs& outputs_;
};

}  // namespace triad
