#include "core/attention/fused_geometry.h"

#include <algorithm>
#include <memory>

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

double FusedFlopOf(const AttentionProblem& problem, const WorkItem& item, const StripShape& shape) {
  const Sequence& sequence = problem.sequences[item.sequence];
  const int64_t rows = item.row_end - item.row_begin;
  // A few rows stand in no lanes: nothing is computed beside them.
  const std::vector<RowStrip> strips =
      rows <= kFewRows ? std::vector<RowStrip>{{.begin = 0, .width = rows}} : StripsOf(rows, shape);
  double pairs = 0;
  for (const RowStrip& strip : strips) {
    const int64_t begin = item.row_begin + strip.begin;
    const KeyRange keys = KeysOfRows(problem, sequence, begin, std::min(begin + strip.width, item.row_end));
    pairs += static_cast<double>(strip.width) * static_cast<double>(keys.end - keys.begin);
  }
  return 2 * pairs * static_cast<double>(problem.qk_head_dim + problem.v_head_dim);
}

void SplitItem(const AttentionProblem& problem, const WorkItem& item, std::vector<WorkItem>& items) {
  const Sequence& sequence = problem.sequences[item.sequence];
  const auto rows = static_cast<double>(item.row_end - item.row_begin);
  const bool is_much = item.flop * std::max(1.0, kLeastSplitRows / rows) >= kLeastSplitFlop;
  if (!is_much || sequence.key_length <= kFusedKeyChunk) return items.push_back(item);
  const KeyRange keys = KeysOfRows(problem, sequence, item.row_begin, item.row_end);
  const int64_t first = ChunkOf(keys.begin);
  const int64_t chunks = ChunkOf(keys.end - 1) + 1 - first;
  if (chunks <= 1) return items.push_back(item);
  WorkItem part = item;
  part.split = std::make_shared<SplitRows>(first, chunks);
  part.flop /= static_cast<double>(chunks);
  for (int64_t i = 0; i < chunks; ++i) {
    part.chunk = first + i;
    items.push_back(part);
  }
}

}  // namespace triad
