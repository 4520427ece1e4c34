#include "core/attention/fused_geometry.h"

#include <algorithm>
#include <memory>

#include "core/attention/key_range.h"
#include "core/attention/pack_tile.h"
#include "core/attention/row_product.h"
#include "core/base/dims.h"

namespace triad {

std::vector<RowStrip> StripsOf(int64_t rows, const StripShape& shape) {
  const int64_t units = CeilDiv(rows, shape.unit);
  const int64_t count = CeilDiv(units, shape.most_units);
  std::vector<RowStrip> strips;
  strips.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = units * i / count;
    const int64_t last = units * (i + 1) / count;
    strips.push_back({.begin = first * shape.unit, .width = (last - first) * shape.unit});
  }
  return strips;
}

namespace {

// A few rows stand in no lanes: nothing is computed beside them.
std::vector<RowStrip> GroupsOf(int64_t rows, const StripShape& shape) {
  return rows <= kFewRows ? std::vector<RowStrip>{{.begin = 0, .width = rows}} : StripsOf(rows, shape);
}

}  // namespace

double FusedFlopOf(const AttentionProblem& problem, const WorkItem& item, const StripShape& shape) {
  const Sequence& sequence = problem.sequences[item.sequence];
  double pairs = 0;
  for (const RowStrip& strip : GroupsOf(item.row_end - item.row_begin, shape)) {
    const int64_t begin = item.row_begin + strip.begin;
    const KeyRange keys = KeysOfRows(problem, sequence, begin, std::min(begin + strip.width, item.row_end));
    pairs += static_cast<double>(strip.width) * static_cast<double>(keys.end - keys.begin);
  }
  return 2 * pairs * static_cast<double>(problem.qk_head_dim + problem.v_head_dim);
}

int64_t ChunkFloats(const AttentionProblem& problem, int64_t rows, const StripShape& shape) {
  int64_t width = 0;
  for (const RowStrip& strip : GroupsOf(rows, shape)) width += strip.width;
  return width * (RoundUp(problem.v_head_dim, kPackedStep) + 2);
}

std::vector<WorkItem> SplitItem(const AttentionProblem& problem, const WorkItem& item, const StripShape& shape) {
  const KeyRange keys = KeysOfRows(problem, problem.sequences[item.sequence], item.row_begin, item.row_end);
  const int64_t rows = item.row_end - item.row_begin;
  const int64_t first = ChunkOf(keys.begin);
  const int64_t chunks = IsEmpty(keys) ? 0 : ChunkOf(keys.end - 1) + 1 - first;
  const double rows_counted = static_cast<double>(std::max(rows, kLeastSplitRows)) / static_cast<double>(rows);
  if (chunks <= 1 || item.flop * rows_counted < kLeastSplitFlop) return {item};
  std::vector<WorkItem> parts(static_cast<size_t>(chunks), item);
  const auto split = std::make_shared<SplitRows>(first, chunks, ChunkFloats(problem, rows, shape));
  for (int64_t i = 0; i < chunks; ++i) {
    WorkItem& part = parts[static_cast<size_t>(i)];
    part.split = split;
    part.chunk = first + i;
    part.flop = item.flop / static_cast<double>(chunks);
  }
  return parts;
}

}  // namespace triad
