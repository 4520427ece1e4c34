#include "core/attention/lane_strip.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "core/attention/key_range.h"
#include "core/attention/lane_modifiers.h"
#include "core/attention/score_modifiers.h"
#include "core/base/dims.h"

namespace triad {
namespace {

constexpr int64_t kF32Bytes = sizeof(float);
// Of a row of scores: one line more than a block, or rows would share few sets of L1.
constexpr int64_t kScoreStride = kFusedKeyBlock + 16;

}  // namespace

StripBuffers StripBuffersFor(const ItemRows& rows, int64_t widest, Scratch& scratch) {
  return {.scores = scratch.Allocate<float>(kFusedKeyBlock * widest),
          .rows_of_scores = rows.problem().return_weights ? scratch.Allocate<float>(widest * kScoreStride) : nullptr,
          .queries = scratch.Allocate<float>(widest * RoundUp(rows.problem().qk_head_dim, kPackedStep)),
          .first_key = scratch.Allocate<int32_t>(widest),
          .end_key = scratch.Allocate<int32_t>(widest),
          .keep = scratch.Allocate<float>(widest),
          .add = scratch.Allocate<float>(widest),
          .places = scratch.Allocate<OutputPlace>(widest)};
}

LaneStrip::LaneStrip(ItemRows& rows, const RowStrip& strip, bool bf16_pairs, const StripBuffers& buffers,
                     Scratch& scratch)
    : RowGroup(strip.width, rows.problem().v_head_dim, scratch),
      rows_(rows),
      strip_(strip),
      end_(std::min(strip.begin + strip.width, rows.count())),
      buffers_(buffers),
      bf16_pairs_(bf16_pairs),
      query_dims_(RoundUp(rows.problem().qk_head_dim, kPackedStep) / (bf16_pairs ? 2 : 1)),
      shared_({.begin = 0, .end = rows.sequence().kv_len}),
      queries_(scratch.Allocate<float>(query_dims_ * strip.width)),
      modifiers_(rows.scores().has_modifiers() ? scratch.Allocate<RowModifiers>(strip.width) : nullptr) {
  for (int64_t row = strip_.begin; row < end_; ++row) {
    const KeyRange keys = rows_.KeysOf(row);
    if (IsEmpty(keys)) continue;  // its lane may hold anything
    seen_ = Cover(seen_, keys);
    shared_ = Intersection(shared_, keys);
  }
  if (modifiers_ != nullptr && !IsEmpty(seen_)) FindModifiers();
}

// Lanes whose rows see nothing have those of a row that does: what they would read might not be there.
void LaneStrip::FindModifiers() {
  int64_t row = strip_.begin;
  while (IsEmpty(rows_.KeysOf(row))) ++row;
  for (int64_t lane = 0; lane < strip_.width; ++lane) {
    if (!IsEmpty(rows_.KeysOf(strip_.begin + lane))) row = strip_.begin + lane;
    new (modifiers_ + lane) RowModifiers(rows_.scores().ModifiersOf(row, /*key=*/0));
  }
}

void LaneStrip::ListReads(KeyRange keys, FetchList& list) const {
  if (!has_queries_) list.Add(rows_.QueriesFrom(strip_.begin, end_ - strip_.begin));
  keys = Intersection(keys, seen_);
  if (modifiers_ == nullptr || IsEmpty(keys)) return;
  for (int64_t lane = 0; lane < strip_.width; ++lane) {
    const RowModifiers& row = modifiers_[lane];
    const int64_t bias_bytes = ByteSize(row.bias_dtype);
    if (row.bias != nullptr) list.Add(row.bias + keys.begin * bias_bytes, Length(keys) * bias_bytes);
    if (row.keep != nullptr) list.Add(row.keep + keys.begin, Length(keys));
  }
}

// Queries become columns, of pairs where those are multiplied.
void LaneStrip::PackQueries() {
  has_queries_ = true;
  const int64_t width = strip_.width;
  const SourceRows source = rows_.QueriesFrom(strip_.begin, width);
  const bool is_theirs = source.dtype == (bf16_pairs_ ? DType::kBf16 : DType::kF32);
  const int64_t row_bytes = source.dims * ByteSize(source.dtype);
  const bool is_aligned =
      (reinterpret_cast<uintptr_t>(source.data) | static_cast<uintptr_t>(source.stride_bytes)) % kF32Bytes == 0;
  if (is_theirs && is_aligned && row_bytes % (4 * kF32Bytes) == 0 && source.count == width &&
      !std::signbit(rows_.problem().scale)) {
    TransposeRows({.rows = reinterpret_cast<const float*>(source.data),
                   .stride = source.stride_bytes / kF32Bytes,
                   .count = width,
                   .columns = row_bytes / kF32Bytes},
                  queries_, width);
    return;
  }
  if (bf16_pairs_) {
    rows_.PackQueries(strip_.begin, width, reinterpret_cast<uint16_t*>(buffers_.queries), 2 * query_dims_);
  } else {
    rows_.PackQueries(strip_.begin, width, buffers_.queries, query_dims_);
  }
  TransposeRows({.rows = buffers_.queries, .stride = query_dims_, .count = width, .columns = query_dims_}, queries_,
                width);
}

StripSums LaneStrip::StripSumsOf(const RowSums& sums) const {
  return {.output = sums.output,
          .state = {.max = sums.state.max, .sum = sums.state.sum, .keep = buffers_.keep, .add = buffers_.add}};
}

void LaneStrip::Merge(const RowSums& sums, const RowSums& total) const {
  MergeStrip(StripSumsOf(sums), output_dims(), strip_.width, rows_.scores().factor(), StripSumsOf(total));
}

void LaneStrip::AddBlock(KeyRange keys, const BlockRows& block, FetchList& ahead) {
  if (!has_queries_) PackQueries();
  if (keys.end == seen_.end) {
    // So that stores do not wait.
    for (int64_t row = strip_.begin; row < end_;) {
      const SourceRows outputs = rows_.OutputsFrom(row, end_ - row);
      ahead.Add(outputs);
      row += outputs.count;
    }
  }
  const int64_t key_count = Length(keys);
  const int64_t width = strip_.width;
  ScoreStrip scores = {.scores = buffers_.scores, .keys = key_count, .width = width, .factor = rows_.scores().factor()};
  const auto counted = [&](int64_t numbers) { return bf16_pairs_ ? CeilDiv(numbers, 2) : numbers; };
  MultiplyKeys({.bf16_pairs = bf16_pairs_,
                .keys = reinterpret_cast<const float*>(block.keys.data),
                .key_stride = block.keys.stride_bytes / kF32Bytes,
                .key_count = key_count,
                .queries = queries_,
                .dims = counted(rows_.problem().qk_head_dim),
                .width = width,
                .scores = scores.scores,
                .ahead = &ahead});
  if (modifiers_ != nullptr) ModifyStrip(modifiers_, keys.begin, scores);
  scores.keys = RoundUp(key_count, kKeyTree);
  std::fill(scores.scores + key_count * width, scores.scores + scores.keys * width, kHiddenScore);
  if (rows_.problem().return_weights) KeepScores(scores, keys);
  if (keys.begin < shared_.begin || keys.end > shared_.end) HideKeys(scores, keys.begin);
  if (block.value_traits.has_non_finite) {
    for (int64_t row = strip_.begin; row < end_; ++row) {
      rows_.AddNonFiniteValues(row, keys, scores.scores + row - strip_.begin, width);
    }
  }
  const StripSums sums = StripSumsOf(chunk());
  SoftmaxStrip(scores, sums.state);
  if (bf16_pairs_) PairWeights(scores);
  AddValues({.bf16_pairs = bf16_pairs_,
             .values = reinterpret_cast<const float*>(block.values.data),
             .value_stride = block.values.stride_bytes / kF32Bytes,
             .key_count = counted(key_count),
             .weights = scores.scores,
             .dims = rows_.problem().v_head_dim,
             .width = width,
             .keep = sums.state.keep,
             .add = sums.state.add,
             .output = sums.output,
             .ahead = &ahead});
}

// Weights go along rows.
void LaneStrip::KeepScores(const ScoreStrip& scores, KeyRange keys) {
  float* const transposed = buffers_.rows_of_scores;
  TransposeRows({.rows = scores.scores, .stride = scores.width, .count = scores.keys, .columns = scores.width},
                transposed, kScoreStride);
  for (int64_t row = strip_.begin; row < end_; ++row) {
    const KeyRange seen = Intersection(rows_.KeysOf(row), keys);
    if (IsEmpty(seen)) continue;
    rows_.KeepScores(row, seen, transposed + (row - strip_.begin) * kScoreStride + seen.begin - keys.begin);
  }
}

void LaneStrip::HideKeys(const ScoreStrip& scores, int64_t first_key) {
  const auto index = [&](int64_t key) {
    return static_cast<int32_t>(std::clamp<int64_t>(key - first_key, 0, scores.keys));
  };
  for (int64_t lane = 0; lane < strip_.width; ++lane) {
    const KeyRange keys = rows_.KeysOf(strip_.begin + lane);
    buffers_.first_key[lane] = index(keys.begin);
    buffers_.end_key[lane] = index(keys.end);
  }
  const int64_t shared_begin = index(shared_.begin);
  const int64_t shared_end = std::max<int64_t>(shared_begin, index(shared_.end));
  HiddenKeys hidden = {.begin = buffers_.first_key, .end = buffers_.end_key, .first = 0, .last = shared_begin};
  HideScores(scores, hidden);
  hidden.first = shared_end;
  hidden.last = scores.keys;
  HideScores(scores, hidden);
}

bool LaneStrip::IsFinite(const RowSums& sums, int64_t row) const {
  for (int64_t dim = 0; dim < output_dims(); ++dim) {
    if (!std::isfinite(sums.output[dim * strip_.width + row])) return false;
  }
  return true;
}

void LaneStrip::FinishRows(bool held, const RowSums& sums, float value_scale) {
  for (int64_t lane = 0; lane < strip_.width; ++lane) {
    const int64_t row = strip_.begin + lane;
    OutputPlace place;
    if (row < end_ && IsHeld(lane) == held) {
      place = rows_.Finish(row, {.max = sums.state.max[lane], .sum = sums.state.sum[lane], .value_scale = value_scale});
    }
    new (buffers_.places + lane) OutputPlace(place);
  }
  StoreOutputColumns({.sums = sums.output,
                      .added = rows_.NonFiniteValuesOf(strip_.begin),
                      .places = buffers_.places,
                      .dims = rows_.problem().v_head_dim,
                      .width = strip_.width},
                     rows_.problem().dtype);
}

}  // namespace triad
