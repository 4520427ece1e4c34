#include "core/attention/tile_operands.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/dims.h"

namespace triad {
namespace {

constexpr int64_t kTransposedAtOnce = 16;  // TransposeRows' unit; 16 keys of 64 are 4 KiB, so they are still in L1

bool MultipliesBf16(const TileLayout& layout, const AttentionProblem& problem) {
  return layout.bf16_products && problem.dtype == DType::kBf16;
}

void Negate(std::byte* packed, int64_t count, bool bf16) {
  if (bf16) {
    auto* elements = reinterpret_cast<uint16_t*>(packed);
    for (int64_t i = 0; i < count; ++i) elements[i] ^= 0x8000;
  } else {
    auto* elements = reinterpret_cast<float*>(packed);
    for (int64_t i = 0; i < count; ++i) elements[i] = -elements[i];
  }
}

}  // namespace

TileOperands::TileOperands(const TileLayout& layout, const AttentionProblem& problem, const WorkItem& item,
                           Scratch& scratch)
    : problem_(problem),
      sequence_(problem.sequences[item.sequence]),
      item_(item),
      bf16_(MultipliesBf16(layout, problem)),
      element_bytes_(bf16_ ? 2 : 4),
      qk_dims_(RoundUp(problem.qk_head_dim, kPackedStep)),
      v_dims_(RoundUp(problem.v_head_dim, kPackedStep)),
      keys_transposed_(layout.transposes_keys && !bf16_),
      keys_stride_(keys_transposed_ ? layout.padded_stride : qk_dims_),
      padded_rows_(RoundUp(item.row_end - item.row_begin, kTileRows)),
      queries_(scratch.Allocate<std::byte>(padded_rows_ * qk_dims_ * element_bytes_)),
      keys_(scratch.Allocate<std::byte>((keys_transposed_ ? keys_stride_ : kKeyBlock) * qk_dims_ * element_bytes_)),
      values_(scratch.Allocate<std::byte>(kKeyBlock * v_dims_ * element_bytes_)),
      keys_to_transpose_(scratch.Allocate<float>(kTransposedAtOnce * qk_dims_)) {}

void TileOperands::PackElements(const SourceRows& rows, std::byte* packed) const {
  if (bf16_) {
    PackBf16Rows(rows, reinterpret_cast<uint16_t*>(packed));
  } else {
    PackRows(rows, reinterpret_cast<float*>(packed));
  }
}

// Packs `count` rows, one every `stride` elements from element `first` of query.
void TileOperands::PackQueryRows(int64_t first, int64_t stride, int64_t count, std::byte* packed) const {
  const int64_t element_bytes = ByteSize(problem_.dtype);
  PackElements({.data = problem_.query.data + first * element_bytes,
                .stride_bytes = stride * element_bytes,
                .count = count,
                .dtype = problem_.dtype,
                .dims = problem_.qk_head_dim},
               packed);
}

void TileOperands::PackQueries() {
  const int64_t row_bytes = qk_dims_ * element_bytes_;
  const int64_t rows = item_.row_end - item_.row_begin;
  const int64_t group = problem_.group();
  const int64_t used = std::clamp<int64_t>(sequence_.query_length * group - item_.row_begin, 0, rows);
  const auto first_of = [&](int64_t row) {
    const RowPlace place = PlaceOfRow(problem_, item_, row);
    return sequence_.query_begin + place.query * problem_.query.token_stride + place.head * problem_.query.head_stride;
  };
  if (group == 1) {
    PackQueryRows(first_of(0), problem_.query.token_stride, used, queries_);
  } else {
    for (int64_t row = 0; row < used; ++row) PackQueryRows(first_of(row), 0, 1, queries_ + row * row_bytes);
  }
  if (std::signbit(problem_.scale)) Negate(queries_, used * qk_dims_, bf16_);
  std::memset(queries_ + used * row_bytes, 0, static_cast<size_t>((padded_rows_ - used) * row_bytes));
}

SourceRows TileOperands::SourceOf(const HeadRows& rows, int64_t begin, int64_t dims) const {
  const int64_t element_bytes = ByteSize(problem_.dtype);
  return {.data = rows.data + (begin + item_.kv_head * rows.head_stride) * element_bytes,
          .stride_bytes = rows.token_stride * element_bytes,
          .dtype = problem_.dtype,
          .dims = dims};
}

// Packs keys [first, first + count) of `source`, those outside `keys` as zeros.
void TileOperands::PackColumns(SourceRows source, int64_t first, int64_t count, KeyRange keys,
                               std::byte* packed) const {
  const int64_t row_bytes = source.packed_stride() * element_bytes_;
  const int64_t begin = std::clamp(keys.begin, first, first + count);
  const int64_t end = std::clamp(keys.end, begin, first + count);
  std::memset(packed, 0, static_cast<size_t>((begin - first) * row_bytes));
  source.data += begin * source.stride_bytes;
  source.count = end - begin;
  source.following = keys.end - end;
  PackElements(source, packed + (begin - first) * row_bytes);
  std::memset(packed + (end - first) * row_bytes, 0, static_cast<size_t>((first + count - end) * row_bytes));
}

ValueTraits TileOperands::PackBlock(int64_t first_key, ColumnSpan span, KeyRange keys, float value_scale) {
  const SourceRows key_rows = SourceOf(problem_.key, sequence_.key_begin, problem_.qk_head_dim);
  if (keys_transposed_) {
    for (int64_t column = span.begin; column < span.begin + span.width; column += kTransposedAtOnce) {
      PackColumns(key_rows, first_key + column, kTransposedAtOnce, keys,
                  reinterpret_cast<std::byte*>(keys_to_transpose_));
      TransposeRows({.rows = keys_to_transpose_, .stride = qk_dims_, .count = kTransposedAtOnce, .columns = qk_dims_},
                    reinterpret_cast<float*>(keys_) + column, keys_stride_);
    }
  } else {
    PackColumns(key_rows, first_key + span.begin, span.width, keys, keys_ + span.begin * qk_dims_ * element_bytes_);
  }
  std::byte* values = values_ + span.begin * v_dims_ * element_bytes_;
  SourceRows value_rows = SourceOf(problem_.value, sequence_.value_begin, problem_.v_head_dim);
  PackColumns(value_rows, first_key + span.begin, span.width, keys, values);
  const int64_t count = span.width * v_dims_;
  if (bf16_) return SanitizeBf16Values(reinterpret_cast<uint16_t*>(values), count, value_scale);
  return SanitizeValues(reinterpret_cast<float*>(values), count, value_scale);
}

}  // namespace triad
