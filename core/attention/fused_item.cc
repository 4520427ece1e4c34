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
// Of a row of scores: one line more than a block, or rows would share few sets of L1.
constexpr int64_t kScoreStride = kFusedKeyBlock + 16;

// Part `i` of `parts` about equal ones.
KeyRange PartOf(KeyRange whole, size_t i, size_t parts) {
  const int64_t length = whole.end - whole.begin;
  const auto at = [&](size_t n) {
    return whole.begin + length * static_cast<int64_t>(n) / static_cast<int64_t>(parts);
  };
  return {.begin = at(i), .end = at(i + 1)};
}

// The smallest range that holds both.
KeyRange Cover(KeyRange a, KeyRange b) {
  if (a.begin == a.end) return b;
  if (b.begin == b.end) return a;
  return {.begin = std::min(a.begin, b.begin), .end = std::max(a.end, b.end)};
}

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
  for (const Strip& strip : strips_) seen_ = Cover(seen_, strip.seen);
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
    strip.seen = Cover(strip.seen, keys);
    strip.shared = Intersection(strip.shared, keys);
  }
  return strip;
}

int64_t FusedItem::FirstBlock() const { return seen_.begin / kFusedKeyBlock * kFusedKeyBlock; }

KeyRange FusedItem::KeysOfBlock(int64_t first) const {
  // Keys before the first that is seen are hidden, but there.
  return Intersection({.begin = first, .end = first + kFusedKeyBlock},
                      {.begin = seen_.begin / kKeyTree * kKeyTree, .end = seen_.end});
}

LaneState FusedItem::StateOf(int64_t row) const {
  return {.max = state_.max + row, .sum = state_.sum + row, .keep = state_.keep + row, .add = state_.add + row};
}

// Values are taken for numbers whose sums are numbers, and nearly always are. A value that is none would have spoilt
// every row, those too from which it is hidden (0 * NaN is NaN): whoever finds that starts again with more care.
void FusedItem::Run() {
  PackQueries();
  float value_scale = 1;
  RunBlocks(ReadValues::kAsTheyAre);
  if (!AllFinite(output_, lanes_ * output_dims_) && !RunBlocks(ReadValues::kFinite)) {
    RunBlocks(ReadValues::kScaled);
    value_scale = kHugeValueScale;
  }
  for (const Strip& strip : strips_) FinishStrip(strip.rows, value_scale);
}

// False: values were met that are too large to be summed as they are.
bool FusedItem::RunBlocks(ReadValues values) {
  std::fill_n(output_, lanes_ * output_dims_, 0.0f);
  std::fill_n(state_.max, lanes_, -kInfinity);
  std::fill_n(state_.sum, lanes_, 0.0f);
  non_finite_ = nullptr;
  for (int64_t first = FirstBlock(); first < seen_.end; first += kFusedKeyBlock) {
    const KeyRange keys = KeysOfBlock(first);
    const BlockRows rows = reader_.Read(keys, values);
    if (rows.value_traits.has_huge && values == ReadValues::kFinite) return false;
    const KeyRange next = KeysOfBlock(first + kFusedKeyBlock);
    for (size_t i = 0; i < strips_.size(); ++i) {
      const Strip& strip = strips_[i];
      reader_.Fetch(PartOf(next, i, strips_.size()));
      KeyRange part = Intersection(strip.seen, keys);
      if (part.begin == part.end) continue;
      part.begin = part.begin / kKeyTree * kKeyTree;
      StripBlock strip_block{.keys = part, .rows = rows};
      strip_block.rows.keys += (part.begin - keys.begin) * rows.key_stride;
      strip_block.rows.values += (part.begin - keys.begin) * rows.value_stride;
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

// Brings the first block and each next strip nearer meanwhile.
void FusedItem::PackQueries() {
  const KeyRange first_block = KeysOfBlock(FirstBlock());
  for (size_t i = 0; i < strips_.size(); ++i) {
    if (i == 0) FetchRows(QueriesOf(strips_[i].rows));
    if (i + 1 < strips_.size()) FetchRows(QueriesOf(strips_[i + 1].rows));
    reader_.Fetch(PartOf(first_block, i, strips_.size()));
    PackStrip(strips_[i].rows);
  }
}

// Queries become columns. Rows past query_length are not read; they become zeros.
void FusedItem::PackStrip(const RowStrip& rows) {
  SourceRows source = QueriesOf(rows);
  float* packed = queries_ + rows.begin * query_dims_;
  const bool is_f32 = problem_.dtype == DType::kF32 && reinterpret_cast<uintptr_t>(source.data) % alignof(float) == 0;
  if (is_f32 && source.count == rows.width && source.dims % 4 == 0 && !std::signbit(problem_.scale)) {
    TransposeRows({.rows = reinterpret_cast<const float*>(source.data),
                   .stride = source.stride_bytes / ByteSize(problem_.dtype),
                   .count = source.count,
                   .columns = source.dims},
                  packed, rows.width);
    return;
  }
  int64_t used = 0;
  while (source.count > 0) {
    PackRows(source, rows_of_strip_ + used * query_dims_);
    used += source.count;
    source = QueriesOf({.begin = rows.begin + used, .width = rows.width - used});
  }
  std::fill(rows_of_strip_ + used * query_dims_, rows_of_strip_ + rows.width * query_dims_, 0.0f);
  if (std::signbit(problem_.scale)) {
    for (int64_t i = 0; i < used * query_dims_; ++i) rows_of_strip_[i] = -rows_of_strip_[i];
  }
  TransposeRows({.rows = rows_of_strip_, .stride = query_dims_, .count = rows.width, .columns = query_dims_}, packed,
                rows.width);
}

SourceRows FusedItem::QueriesOf(const RowStrip& rows) const {
  const int64_t group = problem_.group();
  const RowPlace place = PlaceOfRow(problem_, item_, rows.begin);
  const int64_t counted = std::min(rows_, sequence_.query_length * group - item_.row_begin) - rows.begin;
  const int64_t element_bytes = ByteSize(problem_.dtype);
  const int64_t first =
      sequence_.query_begin + place.query * problem_.query.token_stride + place.head * problem_.query.head_stride;
  return {.data = problem_.query.data + first * element_bytes,
          .stride_bytes = problem_.query.token_stride * element_bytes,
          .count = std::clamp<int64_t>(counted, 0, group == 1 ? rows.width : std::min<int64_t>(rows.width, 1)),
          .dtype = problem_.dtype,
          .dims = problem_.qk_head_dim};
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
