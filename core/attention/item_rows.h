// The rows of one work item of the fused kernel: whose they are, what they see, and where their answers go.
#pragma once

#include <cstdint>

#include "core/attention/attention_kernel.h"
#include "core/attention/pack_tile.h"
#include "core/attention/row_scores.h"
#include "core/attention/store_output.h"
#include "core/attention/tile_outputs.h"
#include "core/base/scratch.h"

namespace triad {

// Rows are counted from the item's first. Borrows its arguments; its buffers are in `scratch`.
class ItemRows {
 public:
  ItemRows(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs, Scratch& scratch);

  const AttentionProblem& problem() const { return problem_; }
  const Sequence& sequence() const { return sequence_; }
  const WorkItem& item() const { return item_; }
  const RowScores& scores() const { return scores_; }
  int64_t count() const { return count_; }
  // What `row` may see; nothing for rows past query_length, and for those past the item's.
  KeyRange KeysOf(int64_t row) const { return row < count_ ? keys_[row] : KeyRange{}; }

  // Writes the queries of rows [begin, begin + count), widened, negated when the scale is negative, to packed
  // [count, stride]. Rows past query_length, or the item's, are not read; they become zeros, as do elements past
  // qk_head_dim.
  void PackQueries(int64_t begin, int64_t count, float* packed, int64_t stride) const;
  // The same of bf16, kept as they are.
  void PackQueries(int64_t begin, int64_t count, uint16_t* packed, int64_t stride) const;
  // Where the query of `row` lies, with those that follow it a stride apart, at most `count` rows; none past
  // query_length.
  SourceRows QueriesFrom(int64_t row, int64_t count) const;

  // Where the output of `row` will be, with those that follow it a stride apart, at most `count` rows, at least one.
  SourceRows OutputsFrom(int64_t row, int64_t count) const;

  // Holds final scores of `row` against `keys`, for its weights. Only if the request wants them.
  void KeepScores(int64_t row, KeyRange keys, const float* scores);
  // Whether MakeScoresFinal has nothing to do.
  bool HasFinalScores() const { return !scores_.has_modifiers() && !problem_.return_weights; }
  // Makes scores of `row` against the keys from `key` on final, and keeps them if the request wants weights.
  // `next_rows` rows follow that will be made so soon.
  void MakeScoresFinal(int64_t row, int64_t key, int64_t next_rows, float* scores, int64_t count);

  // Values that are not finite are read as zeros when one has been met. Any weight times such a value is that value or
  // NaN, whatever the weight: this adds up those that `row` sees among `keys`, whose scores lie `stride` apart.
  void AddNonFiniteValues(int64_t row, KeyRange keys, const float* scores, int64_t stride);
  void ForgetNonFiniteValues() { non_finite_ = nullptr; }
  // What they have added up to, of `row` and those that follow: [rows, v_head_dim rounded up to kPackedStep]; null:
  // none was met.
  const float* NonFiniteValuesOf(int64_t row) const {
    return non_finite_ == nullptr ? nullptr : non_finite_ + row * output_dims_;
  }

  // What `row` came to over all its keys, whose values were read multiplied by value_scale.
  struct Result {
    float max = 0;
    float sum = 0;
    float value_scale = 1;
  };
  // Writes everything of `row` but its output, the sum of weight * value, and says where that goes.
  OutputPlace Finish(int64_t row, const Result& result);
  // Writes everything of `row`: `output` [v_head_dim rounded up to kPackedStep].
  void Finish(int64_t row, const Result& result, const float* output);

 private:
  const AttentionProblem& problem_;
  const Sequence& sequence_;
  const WorkItem& item_;
  Scratch& scratch_;
  const int64_t count_;
  const int64_t output_dims_;  // v_head_dim rounded up to kPackedStep
  const RowScores scores_;
  TileOutputs outputs_;
  KeyRange* const keys_;              // [count]
  float* non_finite_ = nullptr;       // [count, output_dims_]; null until some visible value is not finite
  std::byte* spare_value_ = nullptr;  // one value, where it lies in two pieces; as non_finite_
};

}  // namespace triad
