#include "core/layer/reply_padding.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/attention/store_output.h"
#include "core/layer/projection.h"

namespace triad {
namespace {

// Most bytes of an item, some 0.1 ms.
constexpr int64_t kFillBytes = 1 << 20;
// Work that filling a byte counts as: a core moves some 10 GB/s and computes some 80 GFLOP/s.
constexpr double kFlopPerByte = 8;

constexpr size_t kPaddedRank = 3;  // [batch, tokens, width]; PACKED has no padding

constexpr ReplyPadding::Field kFields[] = {ReplyPadding::Field::kOutput, ReplyPadding::Field::kLse,
                                           ReplyPadding::Field::kWeights};

}  // namespace

ReplyPadding::ReplyPadding(const HostedLayer& layer, const ForwardProblem& problem)
    : layer_(layer),
      dtype_(problem.dtype),
      heads_(problem.attention.heads),
      has_lse_(problem.attention.return_lse),
      has_weights_(problem.attention.return_weights) {
  if (problem.output_shape.size() != kPaddedRank || problem.tokens == problem.output_rows) return;
  tokens_ = problem.output_shape[1];
  if (has_weights_) columns_ = problem.attention.weights_shape.back();
  auto counts = problem.input_rows.begin();
  for (int64_t s = 0; s < problem.output_shape[0]; ++s) {
    Gap gap{.sequence = s, .rows_before = gap_rows()};
    if (counts != problem.input_rows.end() && counts->first_row < (s + 1) * tokens_) gap.length = counts++->rows;
    gap.rows = tokens_ - gap.length;
    if (gap.rows > 0) gaps_.push_back(gap);
  }
}

ReplyPadding::Rows ReplyPadding::RowsOf(Field field) const {
  constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));
  switch (field) {
    case Field::kOutput:
      return {.heads = 1, .row_bytes = layer_.spec().output_dim * ByteSize(dtype_)};
    case Field::kLse:
      return {.heads = has_lse_ ? heads_ : 0, .row_bytes = kFloatBytes};
    case Field::kWeights:
      return {.heads = has_weights_ ? heads_ : 0, .row_bytes = columns_ * kFloatBytes};
  }
  return {};
}

std::vector<ReplyPadding::Item> ReplyPadding::Items() const {
  std::vector<Item> items;
  for (const Field field : kFields) {
    const Rows rows = RowsOf(field);
    const int64_t all = rows.heads * gap_rows();
    if (rows.row_bytes == 0) continue;
    const int64_t most = std::max<int64_t>(1, kFillBytes / rows.row_bytes);
    for (int64_t row = 0; row < all; row += most) {
      Item item{.field = field, .begin = row, .end = std::min(row + most, all)};
      item.flop = kFlopPerByte * static_cast<double>((item.end - item.begin) * rows.row_bytes);
      items.push_back(item);
    }
  }
  return items;
}

double ReplyPadding::flop() const {
  int64_t bytes = 0;
  for (const Field field : kFields) bytes += RowsOf(field).heads * gap_rows() * RowsOf(field).row_bytes;
  return kFlopPerByte * static_cast<double>(bytes);
}

template <class Visit>
void ReplyPadding::ForEachRun(const Item& item, Visit visit) const {
  const int64_t heads = RowsOf(item.field).heads;
  auto gap = std::upper_bound(gaps_.begin(), gaps_.end(), item.begin / heads,
                              [](int64_t row, const Gap& other) { return row < other.rows_before; }) -
             1;
  for (int64_t at = item.begin; at < item.end;) {
    const int64_t in_sequence = at - gap->rows_before * heads;
    const int64_t head = in_sequence / gap->rows;
    const int64_t in_head = in_sequence % gap->rows;
    const int64_t count = std::min(gap->rows - in_head, item.end - at);
    visit((gap->sequence * heads + head) * tokens_ + gap->length + in_head, count);
    at += count;
    if (at == (gap->rows_before + gap->rows) * heads) ++gap;
  }
}

void ReplyPadding::Fill(const Item& item, const ForwardReply& reply, Scratch& scratch) const {
  switch (item.field) {
    case Field::kOutput:
      return FillOutput(item, reply.output, scratch);
    case Field::kLse:
      return ForEachRun(item, [&](int64_t row, int64_t count) {
        constexpr float kNothing = -std::numeric_limits<float>::infinity();
        auto* const lse = reinterpret_cast<std::byte*>(reply.lse);
        for (int64_t r = row; r < row + count; ++r) std::memcpy(lse + r * sizeof(float), &kNothing, sizeof(float));
      });
    case Field::kWeights:
      return ForEachRun(item, [&](int64_t row, int64_t count) {
        const int64_t row_bytes = RowsOf(Field::kWeights).row_bytes;
        auto* const weights = reinterpret_cast<std::byte*>(reply.weights);
        std::memset(weights + row * row_bytes, 0, static_cast<size_t>(count * row_bytes));
      });
  }
}

void ReplyPadding::FillOutput(const Item& item, std::byte* output, Scratch& scratch) const {
  const float* const bias = layer_.output_projection().bias();
  const int64_t row_bytes = RowsOf(Field::kOutput).row_bytes;
  auto* const filled = scratch.Allocate<std::byte>(row_bytes);
  if (bias != nullptr) {
    StoreOutputRow({.sums = bias, .dims = layer_.spec().output_dim}, {.stored = filled}, dtype_);
  } else {
    std::memset(filled, 0, static_cast<size_t>(row_bytes));
  }
  ForEachRun(item, [&](int64_t row, int64_t count) {
    for (int64_t r = row; r < row + count; ++r) {
      std::memcpy(output + r * row_bytes, filled, static_cast<size_t>(row_bytes));
    }
  });
}

}  // namespace triad
