#include "core/attention/few_rows.h"

#include <algorithm>

#include "core/attention/fused_geometry.h"
#include "core/attention/key_range.h"
#include "core/attention/score_modifiers.h"
#include "core/base/dims.h"

namespace triad {
namespace {

constexpr int64_t kStateRows = 16;  // MergeRows' rounding of kFewRows

}  // namespace

FewRows::FewRows(ItemRows& rows, Scratch& scratch)
    : RowGroup(rows.count(), rows.problem().v_head_dim, scratch),
      rows_(rows),
      count_(rows.count()),
      query_dims_(RoundUp(rows.problem().qk_head_dim, kPackedStep)),
      queries_(scratch.Allocate<float>(count_ * query_dims_)),
      scores_(scratch.Allocate<float>(count_ * kFusedKeyBlock)),
      merge_factors_(scratch.Allocate<float>(2 * kStateRows)),
      block_(NewSums()) {
  for (int64_t row = 0; row < count_; ++row) seen_ = Cover(seen_, rows_.KeysOf(row));
  rows_.PackQueries(0, count_, queries_, query_dims_);
  Clear(block_);  // what lies past v_head_dim stays so
}

void FewRows::Merge(const RowSums& sums, const RowSums& total) const {
  MergeRows({.total = total.output,
             .block = sums.output,
             .rows = count_,
             .dims = output_dims(),
             .factor = rows_.scores().factor(),
             .total_state = total.state,
             .block_state = sums.state,
             .factors = merge_factors_});
}

void FewRows::AddBlock(KeyRange keys, const BlockRows& block, FetchList& ahead) {
  MultiplyKeysByRows({.keys = block.keys,
                      .queries = queries_,
                      .query_stride = query_dims_,
                      .rows = count_,
                      .scores = scores_,
                      .score_stride = kFusedKeyBlock,
                      .ahead = &ahead});
  for (int64_t row = 0; row < count_; ++row) {
    const RowMaxAndSum result = SoftmaxOf(row, keys, block);
    block_.state.max[row] = result.max;
    block_.state.sum[row] = result.sum;
  }
  MultiplyValuesByRows({.values = block.values,
                        .weights = scores_,
                        .weight_stride = kFusedKeyBlock,
                        .rows = count_,
                        .output = block_.output,
                        .output_stride = output_dims(),
                        .ahead = &ahead});
  Merge(block_, chunk());
}

RowMaxAndSum FewRows::SoftmaxOf(int64_t row, KeyRange keys, const BlockRows& block) {
  float* const scores = scores_ + row * kFusedKeyBlock;
  const KeyRange visible = Intersection(rows_.KeysOf(row), keys);
  const int64_t begin = visible.begin - keys.begin;
  const int64_t end = visible.end - keys.begin;
  const int64_t count = RoundUp(Length(keys), kKeyTree);
  std::fill(scores, scores + std::min(begin, count), kHiddenScore);
  std::fill(scores + std::min(end, count), scores + count, kHiddenScore);
  if (!IsEmpty(visible) && !rows_.HasFinalScores()) {
    rows_.MakeScoresFinal(row, visible.begin, count_ - 1 - row, scores + begin, Length(visible));
  }
  if (block.value_traits.has_non_finite) rows_.AddNonFiniteValues(row, keys, scores, /*stride=*/1);
  return SoftmaxOfRow(scores, count, rows_.scores().factor());
}

void FewRows::Finish(float value_scale) {
  const RowSums& sums = total();
  for (int64_t row = 0; row < count_; ++row) {
    rows_.Finish(row, {.max = sums.state.max[row],
                       .sum = sums.state.sum[row],
                       .value_scale = value_scale,
                       .output = sums.output + row * output_dims()});
  }
}

}  // namespace triad
