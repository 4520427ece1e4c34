#include "core/attention/tile_geometry.h"

#include <algorithm>
#include <iterator>

#include "core/attention/pack_tile.h"
#include "core/base/dims.h"

namespace triad {
namespace {

// Columns over all blocks of a tile whose rows see `keys`.
int64_t ColumnsOf(KeyRange keys) {
  if (keys.begin == keys.end) return 0;
  const int64_t first_block = keys.begin / kKeyBlock;
  const int64_t last_block = (keys.end - 1) / kKeyBlock;
  const int64_t begin = keys.begin - first_block * kKeyBlock;
  const int64_t end = keys.end - last_block * kKeyBlock;
  if (first_block == last_block) return SpanOf(begin, end).width;
  return SpanOf(begin, kKeyBlock).width + (last_block - first_block - 1) * kKeyBlock + SpanOf(0, end).width;
}

}  // namespace

TileLayout LayoutFor(InstructionSet isa) {
  if (isa >= InstructionSet::kAvx512) return {.bf16_products = isa >= InstructionSet::kAvx512Bf16};
  return {.transposes_keys = true, .padded_stride = kKeyBlock + 16};
}

int RowClassIndex(int64_t rows) {
  return static_cast<int>(std::lower_bound(std::begin(kRowClasses), std::end(kRowClasses), rows) -
                          std::begin(kRowClasses));
}

ColumnSpan SpanOf(int64_t begin, int64_t end) {
  const int64_t first = begin / 64 * 64;
  const int64_t span = end - first;
  return {.begin = first, .width = RoundUp(span, span <= 64 ? 16 : 64)};
}

int WidthIndex(int64_t width) {
  return static_cast<int>(std::lower_bound(std::begin(kWidths), std::end(kWidths), width) - std::begin(kWidths));
}

double FlopOf(const AttentionProblem& problem, const WorkItem& item) {
  const Sequence& sequence = problem.sequences[item.sequence];
  double pairs = 0;
  for (int64_t row = item.row_begin; row < item.row_end; row += kTileRows) {
    const int64_t row_end = std::min(row + kTileRows, item.row_end);
    const int64_t columns = ColumnsOf(KeysOfRows(problem, sequence, row, row_end));
    const int64_t rows = kRowClasses[RowClassIndex(row_end - row)];
    pairs += static_cast<double>(rows) * static_cast<double>(columns);
  }
  const int64_t dims = RoundUp(problem.qk_head_dim, kPackedStep) + RoundUp(problem.v_head_dim, kPackedStep);
  return 2 * pairs * static_cast<double>(dims);
}

}  // namespace triad
