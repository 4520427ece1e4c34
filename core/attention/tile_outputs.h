// Where an item's rows of output go, and its lse and weights, written.
#pragma once

#include <cstdint>

#include "core/attention/attention_kernel.h"
#include "core/attention/item_plan.h"
#include "core/attention/store_output.h"

namespace triad {

// A row when all its keys have been seen.
struct FinishedRow {
  KeyRange keys;          // from VisibleKeys; empty past query_length
  float max = 0;          // largest score; -inf: nothing seen
  float sum = 0;          // NaN: a visible score was NaN or +inf
  float factor = 1;       // of ScoreTile
  float value_scale = 1;  // that the values were multiplied by
};

// Borrows its arguments. Different rows are independent.
class TileOutputs {
 public:
  TileOutputs(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs)
      : problem_(problem), sequence_(problem.sequences[item.sequence]), item_(item), outputs_(outputs) {}

  // Where a row's output will be.
  std::byte* OutputOf(RowPlace place) const;

  // Holds final scores of `count` keys from `key` on where the row's weights will be. Only when weights are asked for.
  void KeepScores(int64_t row, int64_t key, const float* scores, int64_t count);

  // Writes lse and weights of the row, and says where its output goes, the sum of weight * value. The sink is taken
  // into account; where no key was seen the factor is 0.
  OutputPlace Finish(int64_t row, const FinishedRow& finished);

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
