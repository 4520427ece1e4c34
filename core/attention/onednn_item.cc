// The loop over key blocks. For each block: pack its keys and values once, then for each tile of rows
//   scores = q . k;  modifiers;  weights = e^(score - block maximum) and their sums;  weights . v; merge into the
//   running (maximum, sum, output): every block is a partial result with a maximum of its own
// (online softmax; Milakov & Gimelshein 2018, arXiv:1805.02867). Blocks sit at absolute positions and merge in order,
// and hidden keys add exact zeros, so what a row adds up, and in which order, does not depend on the rows beside it.
#include "core/attention/onednn_item.h"

#include <algorithm>
#include <utility>

#include "core/attention/score_modifiers.h"
#include "core/base/dims.h"

namespace triad {
OneDnnItem::OneDnnItem(const Context& context, const WorkItem& item, Scratch& scratch)
    : layout_(context.layout),
      products_(context.products),
      problem_(context.problem),
      item_(item),
      scratch_(scratch),
      rows_(problem_, item, context.outputs, scratch),
      padded_rows_(RoundUp(rows_.count(), kTileRows)),
      operands_(layout_, problem_, item, scratch),
      scores_(scratch.Allocate<float>(kTileRows * layout_.ScoreStride(kKeyBlock))),
      bf16_weights_(operands_.bf16() ? scratch.Allocate<uint16_t>(kTileRows * kKeyBlock) : nullptr),
      block_output_(scratch.Allocate<float>(kTileRows * operands_.v_dims())),
      output_(scratch.Allocate<float>(padded_rows_ * operands_.v_dims())),
      column_begin_(scratch.Allocate<int32_t>(kTileRows)),
      column_end_(scratch.Allocate<int32_t>(kTileRows)),
      total_{.max = scratch.Allocate<float>(padded_rows_), .sum = scratch.Allocate<float>(padded_rows_)},
      block_state_{.max = scratch.Allocate<float>(kTileRows), .sum = scratch.Allocate<float>(kTileRows)},
      merge_factors_(scratch.Allocate<float>(2 * kTileRows)) {
  // Merging works on whole vectors: spare rows' states are not used, but not left to chance either.
  std::fill_n(block_state_.max, kTileRows, 0.0f);
  std::fill_n(block_state_.sum, kTileRows, 0.0f);
}

absl::Status OneDnnItem::Run() {
  operands_.PackQueries();
  float value_scale = 1;
  absl::StatusOr<bool> done = RunBlocks(value_scale);
  if (done.ok() && !*done) {
    value_scale = kHugeValueScale;
    done = RunBlocks(value_scale);
  }
  if (!done.ok()) return done.status();
  for (int64_t row = 0; row < rows_.count(); ++row) {
    rows_.Finish(row, {.max = total_.max[row], .sum = total_.sum[row], .value_scale = value_scale},
                 output_ + row * operands_.v_dims());
  }
  return absl::OkStatus();
}

// False: values were met that are too large to be summed as they are.
absl::StatusOr<bool> OneDnnItem::RunBlocks(float value_scale) {
  std::fill_n(output_, padded_rows_ * operands_.v_dims(), 0.0f);
  std::fill_n(total_.max, padded_rows_, kHiddenScore);
  std::fill_n(total_.sum, padded_rows_, 0.0f);
  rows_.ForgetNonFiniteValues();
  RowTile tiles[kItemRows / kTileRows];
  int tile_count = 0;
  for (int64_t row = 0; row < rows_.count(); row += kTileRows) {
    const int64_t end = std::min(row + kTileRows, rows_.count());
    const KeyRange keys = KeysOfRows(problem_, rows_.sequence(), item_.row_begin + row, item_.row_begin + end);
    tiles[tile_count++] = {.begin = row, .end = end, .keys = keys};
  }
  const KeyRange seen = KeysOfRows(problem_, rows_.sequence(), item_.row_begin, item_.row_end);
  for (int64_t first_key = seen.begin / kKeyBlock * kKeyBlock; first_key < seen.end; first_key += kKeyBlock) {
    const KeyRange keys{.begin = std::max(seen.begin, first_key), .end = std::min(seen.end, first_key + kKeyBlock)};
    const ColumnSpan span = SpanOf(keys.begin - first_key, keys.end - first_key);
    const ValueTraits traits = operands_.PackBlock(first_key, span, keys, value_scale);
    if (traits.has_huge && value_scale == 1) return false;
    const KeyBlock block{.first_key = first_key, .has_non_finite_values = traits.has_non_finite};
    for (int t = 0; t < tile_count; ++t) {
      if (absl::Status status = AddTile(block, tiles[t]); !status.ok()) return status;
    }
  }
  return true;
}

absl::Status OneDnnItem::AddTile(const KeyBlock& block, const RowTile& tile) {
  const auto column_of = [&](int64_t key) { return std::clamp<int64_t>(key - block.first_key, 0, kKeyBlock); };
  const int64_t first = column_of(tile.keys.begin);
  const int64_t last = column_of(tile.keys.end);
  if (first >= last) return absl::OkStatus();  // no row of the tile sees the block
  const ColumnSpan span = SpanOf(first, last);
  for (int64_t r = 0; r < tile.rows(); ++r) {
    const KeyRange keys = rows_.KeysOf(tile.begin + r);
    const int64_t begin = std::clamp<int64_t>(column_of(keys.begin) - span.begin, 0, span.width);
    column_begin_[r] = static_cast<int32_t>(begin);
    column_end_[r] = static_cast<int32_t>(std::clamp<int64_t>(column_of(keys.end) - span.begin, begin, span.width));
  }
  if (absl::Status status = MultiplyByKeys(tile, span); !status.ok()) return status;
  const ScoreTile scores{.scores = scores_,
                         .stride = layout_.ScoreStride(span.width),
                         .rows = tile.rows(),
                         .width = span.width,
                         .begin = column_begin_,
                         .end = column_end_,
                         .factor = rows_.scores().factor()};
  const KeyBlock columns{.first_key = block.first_key + span.begin,
                         .has_non_finite_values = block.has_non_finite_values};
  if (!rows_.HasFinalScores()) MakeScoresFinal(columns, tile, scores);
  if (columns.has_non_finite_values) {
    const KeyRange keys{.begin = columns.first_key, .end = columns.first_key + span.width};
    for (int64_t r = 0; r < tile.rows(); ++r) {
      rows_.AddNonFiniteValues(tile.begin + r, keys, scores_ + r * scores.stride, /*stride=*/1);
    }
  }
  SoftmaxRows(scores, block_state_);
  if (operands_.bf16()) RoundRowsToBf16(scores, bf16_weights_);
  if (absl::Status status = MultiplyByValues(tile, span); !status.ok()) return status;
  MergeRows({.total = output_ + tile.begin * operands_.v_dims(),
             .block = block_output_,
             .rows = tile.rows(),
             .dims = operands_.v_dims(),
             .factor = rows_.scores().factor(),
             .total_state = {.max = total_.max + tile.begin, .sum = total_.sum + tile.begin},
             .block_state = block_state_,
             .factors = merge_factors_});
  return absl::OkStatus();
}

absl::Status OneDnnItem::MultiplyByKeys(const RowTile& tile, ColumnSpan span) {
  const void* queries = operands_.queries(tile.begin);
  absl::StatusOr<MatmulCall*> call = CallFor(Product::kScores, tile.rows(), span.width);
  return call.ok() ? (*call)->Run(queries, operands_.keys(span.begin), scores_) : call.status();
}

absl::Status OneDnnItem::MultiplyByValues(const RowTile& tile, ColumnSpan span) {
  const void* values = operands_.values(span.begin);
  absl::StatusOr<MatmulCall*> call = CallFor(Product::kValues, tile.rows(), span.width);
  if (!call.ok()) return call.status();
  return (*call)->Run(operands_.bf16() ? static_cast<const void*>(bf16_weights_) : scores_, values, block_output_);
}

absl::StatusOr<MatmulCall*> OneDnnItem::CallFor(Product product, int64_t rows, int64_t width) {
  const int row_class = RowClassIndex(rows);
  const size_t index =
      (static_cast<size_t>(product) * std::size(kRowClasses) + row_class) * std::size(kWidths) + WidthIndex(width);
  std::optional<MatmulCall>& call = calls_[index];
  if (call) return &*call;
  MatmulShape shape{.m = kRowClasses[row_class], .bf16 = operands_.bf16()};
  if (product == Product::kScores) {
    shape.k = shape.a_stride = operands_.qk_dims();
    shape.n = width;
    shape.b_transposed = !operands_.keys_transposed();
    shape.b_stride = operands_.keys_stride();
    shape.c_stride = layout_.ScoreStride(width);
  } else {
    shape.k = width;
    shape.a_stride = operands_.bf16() ? width : layout_.ScoreStride(width);
    shape.n = shape.b_stride = shape.c_stride = operands_.v_dims();
  }
  absl::StatusOr<std::shared_ptr<const TileMatmul>> matmul = products_.Get(shape);
  if (!matmul.ok()) return matmul.status();
  std::byte* scratchpad = scratch_.Allocate<std::byte>((*matmul)->scratchpad_bytes());
  absl::StatusOr<MatmulCall> made = MatmulCall::Create(*std::move(matmul), scratchpad);
  if (!made.ok()) return made.status();
  call = *std::move(made);
  return &*call;
}

// Hidden scores are -inf from here on.
void OneDnnItem::MakeScoresFinal(const KeyBlock& block, const RowTile& tile, const ScoreTile& scores) {
  for (int64_t r = 0; r < tile.rows(); ++r) {
    const int64_t begin = scores.begin[r];
    const int64_t count = scores.end[r] - begin;
    if (count == 0) continue;
    rows_.MakeScoresFinal(tile.begin + r, block.first_key + begin, tile.rows() - 1 - r,
                          scores.scores + r * scores.stride + begin, count);
  }
}

}  // namespace triad
