#include "core/attention/item_rows.h"

#include <algorithm>
#include <cmath>

#include "core/attention/key_range.h"
#include "core/attention/score_modifiers.h"
#include "core/base/dims.h"

namespace triad {
namespace {

void Pack(const SourceRows& rows, float* packed) { PackRows(rows, packed); }
void Pack(const SourceRows& rows, uint16_t* packed) { PackBf16Rows(rows, packed); }
float Negated(float element) { return -element; }
uint16_t Negated(uint16_t bf16) { return bf16 ^ 0x8000; }

template <class Element>
void PackQueriesOf(const ItemRows& rows, int64_t begin, int64_t count, Element* packed, int64_t stride) {
  for (int64_t done = 0; done < count;) {
    Element* const to = packed + done * stride;
    const SourceRows source = rows.QueriesFrom(begin + done, count - done);
    if (source.count > 0) Pack(source, to);
    const int64_t elements = std::max<int64_t>(source.count, 1) * stride;
    if (source.count == 0) std::fill_n(to, elements, Element{0});
    if (std::signbit(rows.problem().scale)) std::transform(to, to + elements, to, [](Element e) { return Negated(e); });
    done += std::max<int64_t>(source.count, 1);
  }
}

}  // namespace

ItemRows::ItemRows(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                   Scratch& scratch)
    : problem_(problem),
      sequence_(problem.sequences[item.sequence]),
      item_(item),
      scratch_(scratch),
      count_(item.rows_of_head() * item.kv_heads),
      output_dims_(RoundUp(problem.v_head_dim, kPackedStep)),
      scores_(problem, item),
      outputs_(problem, item, outputs),
      keys_(scratch.Allocate<KeyRange>(count_)) {
  for (int64_t row = 0; row < count_; ++row) {
    const int64_t query = PlaceOfRow(problem_, item_, row).query;
    keys_[row] = query < sequence_.query_length ? problem_.VisibleKeys(sequence_, query) : KeyRange{};
  }
}

SourceRows ItemRows::QueriesFrom(int64_t row, int64_t count) const {
  const int64_t group = problem_.group();
  const RowPlace place = PlaceOfRow(problem_, item_, row);
  const int64_t row_of_head = item_.kv_heads == 1 ? row : row % item_.rows_of_head();
  const int64_t counted =
      std::min(item_.rows_of_head(), sequence_.query_length * group - item_.row_begin) - row_of_head;
  const int64_t element_bytes = ByteSize(problem_.dtype);
  const int64_t first =
      sequence_.query_begin + place.query * problem_.query.token_stride + place.head * problem_.query.head_stride;
  return {.data = problem_.query.data + first * element_bytes,
          .stride_bytes = problem_.query.token_stride * element_bytes,
          .count = std::clamp<int64_t>(counted, 0, group == 1 ? count : 1),  // the next may be another head's
          .dtype = problem_.dtype,
          .dims = problem_.qk_head_dim};
}

void ItemRows::PackQueries(int64_t begin, int64_t count, float* packed, int64_t stride) const {
  PackQueriesOf(*this, begin, count, packed, stride);
}

void ItemRows::PackQueries(int64_t begin, int64_t count, uint16_t* packed, int64_t stride) const {
  PackQueriesOf(*this, begin, count, packed, stride);
}

SourceRows ItemRows::OutputsFrom(int64_t row, int64_t count) const {
  return {.data = outputs_.OutputOf(PlaceOfRow(problem_, item_, row)),
          .stride_bytes = problem_.output_token_stride * ByteSize(problem_.dtype),
          .count = problem_.group() == 1 && item_.kv_heads == 1 ? count : 1,  // the next may be another head's
          .dtype = problem_.dtype,
          .dims = problem_.v_head_dim};
}

void ItemRows::KeepScores(int64_t row, KeyRange keys, const float* scores) {
  outputs_.KeepScores(row, keys.begin, scores, Length(keys));
}

void ItemRows::MakeScoresFinal(int64_t row, int64_t key, int64_t next_rows, float* scores, int64_t count) {
  if (scores_.has_modifiers()) scores_.Modify(row, key, next_rows, scores, count);
  if (problem_.return_weights) outputs_.KeepScores(row, key, scores, count);
}

void ItemRows::AddNonFiniteValues(int64_t row, KeyRange keys, const float* scores, int64_t stride) {
  if (non_finite_ == nullptr) {
    non_finite_ = scratch_.Allocate<float>(count_ * output_dims_);
    std::fill_n(non_finite_, count_ * output_dims_, -0.0f);  // which changes no sum, not even -0
    spare_value_ = scratch_.Allocate<std::byte>(problem_.v_head_dim * ByteSize(problem_.dtype));
  }
  float* sums = non_finite_ + row * output_dims_;
  const int64_t element_bytes = ByteSize(problem_.dtype);
  const int64_t row_bytes = problem_.v_head_dim * element_bytes;
  const KeyRange seen = Intersection(keys_[row], keys);
  for (int64_t key = seen.begin; key < seen.end; ++key) {
    if (scores[(key - keys.begin) * stride] == kHiddenScore) continue;  // hidden, or of weight 0: not read
    const int64_t first =
        sequence_.value_begin + key * problem_.value.token_stride + item_.kv_head * problem_.value.head_stride;
    const std::byte* values = problem_.value.Bytes(first * element_bytes, row_bytes, spare_value_);
    for (int64_t i = 0; i < problem_.v_head_dim; ++i) {
      const float value = LoadElement(values + i * element_bytes, problem_.dtype);
      if (!std::isfinite(value)) sums[i] += value;
    }
  }
}

OutputPlace ItemRows::Finish(int64_t row, const Result& result) {
  FinishedRow finished{.keys = keys_[row],
                       .max = result.max,
                       .sum = result.sum,
                       .factor = scores_.factor(),
                       .value_scale = result.value_scale};
  if (IsEmpty(finished.keys)) {  // it computed whatever its neighbours needed
    finished.max = kHiddenScore;
    finished.sum = 0;
  }
  return outputs_.Finish(row, finished);
}

void ItemRows::Finish(int64_t row, const Result& result, const float* output) {
  StoreOutputRow({.sums = output, .added = NonFiniteValuesOf(row), .dims = problem_.v_head_dim}, Finish(row, result),
                 problem_.dtype);
}

}  // namespace triad
