#include "core/attention/few_rows.h"

#include <algorithm>

#include "core/attention/fused_geometry.h"
#include "core/attention/key_range.h"
#include "core/attention/score_modifiers.h"
#include "core/base/dims.h"

namespace triad {
namespace {

// What is fetched before its turn; 0: nothing, rows are read in order. One row is done with a page before memory brings
// the next; several take as long as memory does, which prefetches then hide (DECISIONS.md, "Several rows of one head").
// Of heads together 16 tokens are read before the first head's are done.
int64_t BytesAhead(const WorkItem& item) {
  if (item.kv_heads > 1) return 65536;
  return item.rows_of_head() > 1 ? 8192 : 0;
}

constexpr int64_t kMergeStep = 16;  // MergeRows'

}  // namespace

FewRows::FewRows(ItemRows& rows, int64_t keys_at_once, bool bf16_pairs, Scratch& scratch)
    : RowGroup(rows.count(), rows.problem().v_head_dim, scratch),
      rows_(rows),
      count_(rows.count()),
      bf16_pairs_(bf16_pairs),
      query_dims_(RoundUp(rows.problem().qk_head_dim, kPackedStep) / (bf16_pairs ? 2 : 1)),
      queries_(scratch.Allocate<float>(count_ * query_dims_)),
      score_stride_(RoundUp(keys_at_once, kKeyTree)),
      scores_(scratch.Allocate<float>(count_ * score_stride_)),
      ahead_(/*capacity=*/2, scratch),
      merge_factors_(scratch.Allocate<float>(2 * RoundUp(count_, kMergeStep))),
      block_(NewSums()) {
  for (int64_t row = 0; row < count_; ++row) seen_ = Cover(seen_, rows_.KeysOf(row));
  if (bf16_pairs_) {
    rows_.PackQueries(0, count_, reinterpret_cast<uint16_t*>(queries_), 2 * query_dims_);
  } else {
    rows_.PackQueries(0, count_, queries_, query_dims_);
  }
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

HeadsTogether FewRows::HeadsOf(const HeadRows& rows) const {
  return {.count = rows_.item().kv_heads, .stride_bytes = rows.head_stride * ByteSize(rows_.problem().dtype)};
}

FetchList* FewRows::AheadOf(const SourceRows& rows, const SourceRows& next) {
  const int64_t bytes_ahead = BytesAhead(rows_.item());
  if (bytes_ahead == 0) return nullptr;
  const int64_t row_bytes = rows.dims * ByteSize(rows.dtype) * rows_.item().kv_heads;  // heads lie together
  const int64_t ahead = std::clamp<int64_t>(bytes_ahead / row_bytes, 1, rows.count);
  ahead_.Clear();
  ahead_.Add(rows.Rows(ahead, rows.count - ahead), row_bytes);
  ahead_.Add(next.Rows(0, std::min(ahead, next.count)), row_bytes);
  return &ahead_;
}

void FewRows::AddBlock(KeyRange keys, const BlockRows& block, FetchList&) {
  MultiplyKeysByRows({.bf16_pairs = bf16_pairs_,
                      .keys = block.keys,
                      .heads = HeadsOf(rows_.problem().key),
                      .queries = queries_,
                      .query_stride = query_dims_,
                      .rows = rows_.item().rows_of_head(),
                      .scores = scores_,
                      .score_stride = score_stride_,
                      .ahead = AheadOf(block.keys, block.values)});
  for (KeyRange part = keys; part.begin < keys.end; part.begin = part.end) {
    part.end = std::min(keys.end, RoundUp(part.begin + 1, kFusedKeyBlock));
    const int64_t first = part.begin - keys.begin;
    const BlockRows rows = block.Rows(first, Length(part));
    AddValues(part, rows, block.values.Rows(first + Length(part), rows.values.following), scores_ + first);
  }
}

void FewRows::AddValues(KeyRange keys, const BlockRows& block, const SourceRows& next, float* scores) {
  for (int64_t row = 0; row < count_; ++row) {
    const RowMaxAndSum result = SoftmaxOf(row, keys, block, scores + row * score_stride_);
    block_.state.max[row] = result.max;
    block_.state.sum[row] = result.sum;
  }
  MultiplyValuesByRows({.bf16_pairs = bf16_pairs_,
                        .values = block.values,
                        .heads = HeadsOf(rows_.problem().value),
                        .weights = scores,
                        .weight_stride = score_stride_,
                        .rows = rows_.item().rows_of_head(),
                        .output = block_.output,
                        .output_stride = output_dims(),
                        .ahead = AheadOf(block.values, next)});
  if (next_block_ == nullptr) {
    Merge(block_, chunk());
  } else {
    next_block_ = std::copy_n(block_.state.max, sums_floats(), next_block_);
  }
}

void FewRows::AddPart(const float* result, int64_t blocks) {
  for (int64_t i = 0; i < blocks; ++i) {
    std::copy_n(result + i * sums_floats(), sums_floats(), block_.state.max);
    Merge(block_, chunk());
  }
}

RowMaxAndSum FewRows::SoftmaxOf(int64_t row, KeyRange keys, const BlockRows& block, float* scores) {
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
  const RowMaxAndSum sums = SoftmaxOfRow(scores, count, rows_.scores().factor());
  if (bf16_pairs_) PairWeightsOfRow(scores, count);
  return sums;
}

bool FewRows::IsFinite(const RowSums& sums, int64_t row) const {
  return AllFinite(sums.output + row * output_dims(), output_dims());
}

void FewRows::FinishRows(bool held, const RowSums& sums, float value_scale) {
  for (int64_t row = 0; row < count_; ++row) {
    if (IsHeld(row) != held) continue;
    rows_.Finish(row, {.max = sums.state.max[row], .sum = sums.state.sum[row], .value_scale = value_scale},
                 sums.output + row * output_dims());
  }
}

}  // namespace triad
