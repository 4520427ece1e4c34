// The scale of a problem's scores, and what changes or hides single ones: how the options of a problem fall on a row.
#pragma once

#include <cstdint>

#include "core/attention/attention_kernel.h"
#include "core/attention/attention_problem.h"
#include "core/attention/score_modifiers.h"

namespace triad {

// Borrows its arguments.
class RowScores {
 public:
  RowScores(const AttentionProblem& problem, const WorkItem& item);

  // Whether the modifiers have anything to do.
  bool has_modifiers() const { return has_modifiers_; }
  // What softmax multiplies differences of scores with: log2(e) and, unless a modifier has applied it, the magnitude of
  // the scale. Its sign belongs to the packed queries. > 0, finite.
  float factor() const { return factor_; }

  // Makes scores[0, count) of `row` (counted from the item's first) against the keys from `key` on final. Hidden ones
  // become -inf. `next_rows` rows follow that will be modified soon.
  void Modify(int64_t row, int64_t key, int64_t next_rows, float* scores, int64_t count) const;
  // What it applies.
  RowModifiers ModifiersOf(int64_t row, int64_t key) const;

 private:
  const AttentionProblem& problem_;
  const Sequence& sequence_;
  const WorkItem& item_;
  bool has_modifiers_ = false;
  float modifier_scale_ = 1;
  float factor_ = 1;
};

}  // namespace triad
