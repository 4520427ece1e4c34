#include "core/attention/few_rows.h"

#include <algorithm>
#include <limits>

#include "core/attention/fused_geometry.h"
#include "core/attention/key_range.h"
#include "core/base/dims.h"

namespace triad {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr int64_t kStateRows = 16;  // MergeRows' rounding of kFewRows

}  // namespace

FewRows::FewRows(ItemRows& rows, Scratch& scratch)
    : rows_(rows),
      count_(rows.count()),
      query_dims_(RoundUp(rows.problem().qk_head_dim, kPackedStep)),
      output_dims_(RoundUp(rows.problem().v_head_dim, kPackedStep)),
      queries_(scratch.Allocate<float>(count_ * query_dims_)),
      scores_(scratch.Allocate<float>(count_ * kFusedKeyBlock)),
      block_output_(scratch.Allocate<float>(count_ * output_dims_)),
      output_(scratch.Allocate<float>(count_ * output_dims_)),
      block_state_{.max = scratch.Allocate<float>(kStateRows), .sum = scratch.Allocate<float>(kStateRows)},
      total_{.max = scratch.Allocate<float>(kStateRows), .sum = scratch.Allocate<float>(kStateRows)},
      merge_factors_(scratch.Allocate<float>(2 * kStateRows)) {
  for (int64_t row = 0; row < count_; ++row) seen_ = Cover(seen_, rows_.KeysOf(row));
  rows_.PackQueries(0, count_, queries_, query_dims_);
}

void FewRows::Start() {
  std::fill_n(output_, count_ * output_dims_, 0.0f);
  std::fill_n(block_output_, count_ * output_dims_, 0.0f);  // what lies past v_head_dim stays so
  for (const RowState& state : {total_, block_state_}) {
    std::fill_n(state.max, kStateRows, kLowest);
    std::fill_n(state.sum, kStateRows, 0.0f);
  }
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
    block_state_.max[row] = result.max;
    block_state_.sum[row] = result.sum;
  }
  MultiplyValuesByRows({.values = block.values,
                        .weights = scores_,
                        .weight_stride = kFusedKeyBlock,
                        .rows = count_,
                        .output = block_output_,
                        .output_stride = output_dims_,
                        .ahead = &ahead});
  MergeRows({.total = output_,
             .block = block_output_,
             .rows = count_,
             .dims = output_dims_,
             .factor = rows_.scores().factor(),
             .total_state = total_,
             .block_state = block_state_,
             .factors = merge_factors_});
}

RowMaxAndSum FewRows::SoftmaxOf(int64_t row, KeyRange keys, const BlockRows& block) {
  float* const scores = scores_ + row * kFusedKeyBlock;
  const KeyRange visible = Intersection(rows_.KeysOf(row), keys);
  const int64_t begin = visible.begin - keys.begin;
  const int64_t end = visible.end - keys.begin;
  const int64_t count = RoundUp(Length(keys), kKeyTree);
  std::fill(scores, scores + std::min(begin, count), kLowest);
  std::fill(scores + std::min(end, count), scores + count, kLowest);
  if (!IsEmpty(visible) && !rows_.HasFinalScores()) {
    rows_.MakeScoresFinal(row, visible.begin, count_ - 1 - row, scores + begin, Length(visible));
  }
  if (block.value_traits.has_non_finite) rows_.AddNonFiniteValues(row, keys, scores, /*stride=*/1);
  return SoftmaxOfRow(scores, count, rows_.scores().factor());
}

bool FewRows::IsFinite() const { return AllFinite(output_, count_ * output_dims_); }

void FewRows::Finish(float value_scale) {
  for (int64_t row = 0; row < count_; ++row) {
    rows_.Finish(row, {.max = total_.max[row],
                       .sum = total_.sum[row],
                       .value_scale = value_scale,
                       .output = output_ + row * output_dims_});
  }
}

}  // namespace triad
