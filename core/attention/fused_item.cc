// The loop over key blocks. For each block, and each strip of rows:
//   scores = keys . queries;  modifiers;  weights = 2^((score - block maximum) * factor) and their sums;
//   output = output * keep + (values . weights) * add: every block is a partial result with a maximum of its own
// (online softmax; Milakov & Gimelshein 2018, arXiv:1805.02867). Blocks sit at absolute positions and merge in order,
// and hidden keys add exact zeros, so what a row adds up, and in which order, does not depend on the rows beside it.
#include "core/attention/fused_item.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/dims.h"

namespace triad {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
// For values whose sums could overflow (ValueTraits::has_huge): a power of two, so exact; 2^128 becomes 2^96.
constexpr float kHugeValueScale = 0x1p-32f;
// Of a row of scores: one line more than a block, or rows would share few sets of L1.
constexpr int64_t kScoreStride = kFusedKeyBlock + 16;

KeyRange Intersection(KeyRange a, KeyRange b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {.begin = begin, .end = std::max(begin, std::min(a.end, b.end))};
}

}  // namespace

FusedItem::FusedItem(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                     const StripShape& shape, Scratch& scratch)
    : problem_(problem),
      sequence_(problem.sequences[item.sequence]),
      item_(item),
      scratch_(scratch),
      rows_(item.row_end - item.row_begin),
      query_dims_(RoundUp(problem.qk_head_dim, kPackedStep)),
      output_dims_(RoundUp(problem.v_head_dim, kPackedStep)),
      row_scores_(problem, item),
      outputs_(problem, item, outputs),
      reader_(problem, item, kFusedKeyBlock, scratch) {
  const std::vector<RowStrip> strips = StripsOf(rows_, shape);
  lanes_ = strips.back().begin + strips.back().width;
  const int64_t widest = shape.unit * shape.most_units;
  row_keys_ = scratch.Allocate<KeyRange>(lanes_);
  for (int64_t row = 0; row < lanes_; ++row) {
    const int64_t query = PlaceOfRow(problem_, item_, row).query;
    const bool counts = row < rows_ && query < sequence_.query_length;
    row_keys_[row] = counts ? problem_.VisibleKeys(sequence_, query) : KeyRange{};
  }
  strips_.reserve(strips.size());
  for (const RowStrip& rows : strips) strips_.push_back(StripOf(rows));
  queries_ = scratch.Allocate<float>(lanes_ * query_dims_);
  output_ = scratch.Allocate<float>(lanes_ * output_dims_);
  scores_ = scratch.Allocate<float>(kFusedKeyBlock * widest);
  if (row_scores_.has_modifiers() || problem_.return_weights) {
    rows_of_scores_ = scratch.Allocate<float>(widest * kScoreStride);
  }
  rows_of_strip_ = scratch.Allocate<float>(widest * std::max(query_dims_, output_dims_));
  first_key_ = scratch.Allocate<int32_t>(widest);
  end_key_ = scratch.Allocate<int32_t>(widest);
  state_ = {.max = scratch.Allocate<float>(lanes_),
            .sum = scratch.Allocate<float>(lanes_),
            .keep = scratch.Allocate<float>(lanes_),
            .add = scratch.Allocate<float>(lanes_)};
}

FusedItem::Strip FusedItem::StripOf(const RowStrip& rows) const {
  Strip strip{.rows = rows, .shared = {.begin = 0, .end = sequence_.kv_len}};
  for (int64_t row = rows.begin; row < rows.begin + rows.width; ++row) {
    const KeyRange keys = row_keys_[row];
    if (keys.begin == keys.end) continue;  // its lane may hold anything
    const bool is_first = strip.seen.begin == strip.seen.end;
    strip.seen.begin = is_first ? keys.begin : std::min(strip.seen.begin, keys.begin);
    strip.seen.end = std::max(strip.seen.end, keys.end);
    strip.shared = Intersection(strip.shared, keys);
  }
  return strip;
}

LaneState FusedItem::StateOf(int64_t row) const {
  return {.max = state_.max + row, .sum = state_.sum + row, .keep = state_.keep + row, .add = state_.add + row};
}

void FusedItem::Run() {
  for (const Strip& strip : strips_) PackStrip(strip.rows);
  float value_scale = 1;
  if (!RunBlocks(value_scale)) {
    value_scale = kHugeValueScale;
    RunBlocks(value_scale);
  }
  for (const Strip& strip : strips_) FinishStrip(strip.rows, value_scale);
}

// False: values were met that are too large to be summed as they are.
bool FusedItem::RunBlocks(float value_scale) {
  std::fill_n(output_, lanes_ * output_dims_, 0.0f);
  std::fill_n(state_.max, lanes_, -kInfinity);
  std::fill_n(state_.sum, lanes_, 0.0f);
  non_finite_ = nullptr;
  KeyRange seen;
  for (const Strip& strip : strips_) {
    if (strip.seen.begin == strip.seen.end) continue;
    const bool is_first = seen.begin == seen.end;
    seen.begin = is_first ? strip.seen.begin : std::min(seen.begin, strip.seen.begin);
    seen.end = std::max(seen.end, strip.seen.end);
  }
  for (int64_t first = seen.begin / kFusedKeyBlock * kFusedKeyBlock; first < seen.end; first += kFusedKeyBlock) {
    const KeyRange block = {.begin = first, .end = first + kFusedKeyBlock};
    // Keys before the first that is seen are hidden, but there.
    const int64_t begin = std::max(first, seen.begin / kKeyTree * kKeyTree);
    const KeyRange keys = {.begin = begin, .end = std::min(block.end, seen.end)};
    const BlockRows rows = reader_.Read(keys, value_scale);
    if (rows.value_traits.has_huge && value_scale == 1) return false;
    for (const Strip& strip : strips_) {
      KeyRange part = Intersection(strip.seen, block);
      if (part.begin == part.end) continue;
      part.begin = part.begin / kKeyTree * kKeyTree;
      StripBlock strip_block{.keys = part, .rows = rows};
      strip_block.rows.keys += (part.begin - begin) * rows.key_stride;
      strip_block.rows.values += (part.begin - begin) * rows.value_stride;
      AddBlock(strip, strip_block);
    }
  }
  return true;
}

void FusedItem::AddBlock(const Strip& strip, const StripBlock& block) {
  const int64_t key_count = block.keys.end - block.keys.begin;
  const int64_t width = strip.rows.width;
  const ScoreStrip scores = {
      .scores = scores_, .keys = RoundUp(key_count, kKeyTree), .width = width, .factor = row_scores_.factor()};
  MultiplyKeys({.keys = block.rows.keys,
                .key_stride = block.rows.key_stride,
                .key_count = key_count,
                .queries = queries_ + strip.rows.begin * query_dims_,
                .dims = problem_.qk_head_dim,
                .width = width,
                .scores = scores_});
  std::fill(scores_ + key_count * width, scores_ + scores.keys * width, -kInfinity);
  if (rows_of_scores_ != nullptr) ModifyScores(strip, scores, block.keys.begin);
  if (block.keys.begin < strip.shared.begin || block.keys.end > strip.shared.end) {
    HideKeys(strip, scores, block.keys.begin);
  }
  if (block.rows.value_traits.has_non_finite) AddNonFiniteValues(strip, block);
  const LaneState state = StateOf(strip.rows.begin);
  SoftmaxStrip(scores, state);
  AddValues({.values = block.rows.values,
             .value_stride = block.rows.value_stride,
             .key_count = key_count,
             .weights = scores_,
             .dims = problem_.v_head_dim,
             .width = width,
             .keep = state.keep,
             .add = state.add,
             .output = output_ + strip.rows.begin * output_dims_});
}

// Modifiers go along rows, as the request's bias and keep do: scores are transposed for them and back.
void FusedItem::ModifyScores(const Strip& strip, const ScoreStrip& scores, int64_t first_key) {
  TransposeRows({.rows = scores_, .stride = scores.width, .count = scores.keys, .columns = scores.width},
                rows_of_scores_, kScoreStride);
  const int64_t end = std::min(strip.rows.begin + strip.rows.width, rows_);
  for (int64_t row = strip.rows.begin; row < end; ++row) {
    const KeyRange keys = Intersection(row_keys_[row], {.begin = first_key, .end = first_key + scores.keys});
    const int64_t count = keys.end - keys.begin;
    if (count == 0) continue;
    float* row_scores = rows_of_scores_ + (row - strip.rows.begin) * kScoreStride + keys.begin - first_key;
    if (row_scores_.has_modifiers()) row_scores_.Modify(row, keys.begin, end - 1 - row, row_scores, count);
    if (problem_.return_weights) outputs_.KeepScores(row, keys.begin, row_scores, count);
  }
  if (!row_scores_.has_modifiers()) return;
  TransposeRows({.rows = rows_of_scores_, .stride = kScoreStride, .count = scores.width, .columns = scores.keys},
                scores_, scores.width);
}

void FusedItem::HideKeys(const Strip& strip, const ScoreStrip& scores, int64_t first_key) {
  const auto index = [&](int64_t key) {
    return static_cast<int32_t>(std::clamp<int64_t>(key - first_key, 0, scores.keys));
  };
  for (int64_t lane = 0; lane < strip.rows.width; ++lane) {
    const KeyRange keys = row_keys_[strip.rows.begin + lane];
    first_key_[lane] = index(keys.begin);
    end_key_[lane] = index(keys.end);
  }
  const int64_t shared_begin = index(strip.shared.begin);
  const int64_t shared_end = std::max<int64_t>(shared_begin, index(strip.shared.end));
  HideScores(scores, {.begin = first_key_, .end = end_key_, .first = 0, .last = shared_begin});
  HideScores(scores, {.begin = first_key_, .end = end_key_, .first = shared_end, .last = scores.keys});
}

// Values that are not finite were read as zeros, so that no product meets them. Any weight times such a value is that
// value or NaN, whatever the weight: they are added up here, for the rows that see them, and join the output at the
// end.
void FusedItem::AddNonFiniteValues(const Strip& strip, const StripBlock& block) {
  if (non_finite_ == nullptr) {
    non_finite_ = scratch_.Allocate<float>(rows_ * output_dims_);
    std::fill_n(non_finite_, rows_ * output_dims_, 0.0f);
  }
  const int64_t element_bytes = ByteSize(problem_.dtype);
  const int64_t end = std::min(strip.rows.begin + strip.rows.width, rows_);
  for (int64_t row = strip.rows.begin; row < end; ++row) {
    float* sums = non_finite_ + row * output_dims_;
    const KeyRange keys = Intersection(row_keys_[row], block.keys);
    for (int64_t key = keys.begin; key < keys.end; ++key) {
      const float score = scores_[(key - block.keys.begin) * strip.rows.width + row - strip.rows.begin];
      if (score == -kInfinity) continue;  // hidden, or of weight 0: not read
      const int64_t first =
          sequence_.value_begin + key * problem_.value.token_stride + item_.kv_head * problem_.value.head_stride;
      for (int64_t i = 0; i < problem_.v_head_dim; ++i) {
        const float value = LoadElement(problem_.value.data + (first + i) * element_bytes, problem_.dtype);
        if (!std::isfinite(value)) sums[i] += value;
      }
    }
  }
}

// Queries become columns. Rows past query_length are not read; they become zeros.
void FusedItem::PackStrip(const RowStrip& rows) {
  const int64_t group = problem_.group();
  const int64_t element_bytes = ByteSize(problem_.dtype);
  const int64_t counted = std::min(rows_, sequence_.query_length * group - item_.row_begin);
  const int64_t used = std::clamp<int64_t>(counted - rows.begin, 0, rows.width);
  const auto pack = [&](int64_t row, int64_t count) {
    const RowPlace place = PlaceOfRow(problem_, item_, rows.begin + row);
    const int64_t first =
        sequence_.query_begin + place.query * problem_.query.token_stride + place.head * problem_.query.head_stride;
    PackRows({.data = problem_.query.data + first * element_bytes,
              .stride_bytes = problem_.query.token_stride * element_bytes,
              .count = count,
              .dtype = problem_.dtype,
              .dims = problem_.qk_head_dim},
             rows_of_strip_ + row * query_dims_);
  };
  if (group == 1) {
    if (used > 0) pack(0, used);
  } else {
    for (int64_t row = 0; row < used; ++row) pack(row, 1);
  }
  std::fill(rows_of_strip_ + used * query_dims_, rows_of_strip_ + rows.width * query_dims_, 0.0f);
  if (std::signbit(problem_.scale)) {
    for (int64_t i = 0; i < used * query_dims_; ++i) rows_of_strip_[i] = -rows_of_strip_[i];
  }
  TransposeRows({.rows = rows_of_strip_, .stride = query_dims_, .count = rows.width, .columns = query_dims_},
                queries_ + rows.begin * query_dims_, rows.width);
}

void FusedItem::FinishStrip(const RowStrip& rows, float value_scale) {
  TransposeRows(
      {.rows = output_ + rows.begin * output_dims_, .stride = rows.width, .count = output_dims_, .columns = rows.width},
      rows_of_strip_, output_dims_);
  for (int64_t row = rows.begin; row < std::min(rows.begin + rows.width, rows_); ++row) {
    float* output = rows_of_strip_ + (row - rows.begin) * output_dims_;
    FinishedRow finished{.keys = row_keys_[row],
                         .max = state_.max[row],
                         .sum = state_.sum[row],
                         .value_scale = value_scale,
                         .factor = row_scores_.factor(),
                         .output = output,
                         .non_finite = non_finite_ == nullptr ? nullptr : non_finite_ + row * output_dims_};
    if (finished.keys.begin == finished.keys.end) {  // its lane computed whatever its neighbours needed
      finished.max = -kInfinity;
      finished.sum = 0;
      std::fill_n(output, output_dims_, 0.0f);
    }
    outputs_.Finish(row, finished);
  }
}

}  // namespace triad
