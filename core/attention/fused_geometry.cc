#include "core/attention/fused_geometry.h"

#include <algorithm>
#include <memory>

#include "core/attention/row_product.h"
#include "core/base/dims.h"

namespace triad {
namespace {

// Keys of a part of `item`: a chunk, or of few rows such a part of it that there is work for others.
int64_t PartKeys(const AttentionProblem& problem, const WorkItem& item) {
  if (item.rows_of_head() > kFewRows) return kFusedKeyChunk;
  const int64_t key_bytes = item.kv_heads * (problem.qk_head_dim + problem.v_head_dim) * ByteSize(problem.dtype);
  int64_t keys = kFusedKeyChunk;
  while (keys > kFusedKeyBlock && keys / 2 * key_bytes >= kPartBytes) keys /= 2;
  return keys;
}

}  // namespace

int64_t KeysAtOnce(const AttentionProblem& problem, const WorkItem& item) {
  return item.rows_of_head() > kFewRows ? kFusedKeyBlock : PartKeys(problem, item);
}

ItemRowsRule FusedItemsOf(const AttentionProblem& problem) {
  ItemRowsRule rule = kFusedItems;
  // So that keys and values are read again soon. Heads that lie beside each other share pages instead.
  rule.head_by_head = !TokensLieApart(problem);
  const bool has_chunks = std::any_of(problem.sequences.begin(), problem.sequences.end(),
                                      [](const Sequence& sequence) { return sequence.key_length > kFusedKeyChunk; });
  if (TokensLieApart(problem) && !has_chunks) rule.flop = kStridedItemFlop;
  return rule;
}

bool HasFewRows(const AttentionProblem& problem) {
  return std::all_of(problem.sequences.begin(), problem.sequences.end(),
                     [&](const Sequence& sequence) { return sequence.q_len * problem.group() <= kFewRows; });
}

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

bool ReadsBeside(const AttentionProblem& problem, const WorkItem& item, const WorkItem& next) {
  const bool is_next_head = next.sequence == item.sequence && next.row_begin == item.row_begin &&
                            next.kv_head == item.kv_head + item.kv_heads;
  const bool are_together = problem.key.head_stride == problem.qk_head_dim &&
                            problem.value.head_stride == problem.v_head_dim && TokensLieApart(problem);
  return is_next_head && are_together && item.rows_of_head() <= kFewRows && item.kv_heads < kMostHeadsTogether;
}

void SplitItem(const AttentionProblem& problem, const WorkItem& item, std::vector<WorkItem>& items) {
  const Sequence& sequence = problem.sequences[item.sequence];
  const auto rows = static_cast<double>(item.rows_of_head());
  const bool is_much = item.flop * std::max(1.0, kLeastSplitRows / rows) >= kLeastSplitFlop;
  const int64_t part_keys = PartKeys(problem, item);
  if (!is_much || sequence.key_length <= part_keys) return items.push_back(item);
  const KeyRange keys = KeysOfRows(problem, sequence, item.row_begin, item.row_end);
  const int64_t first = keys.begin / part_keys;
  const int64_t parts = CeilDiv(keys.end, part_keys) - first;
  if (parts <= 1) return items.push_back(item);
  WorkItem part = item;
  part.split = std::make_shared<SplitRows>(first, parts, part_keys);
  part.flop /= static_cast<double>(parts);
  for (int64_t i = 0; i < parts; ++i) {
    part.part = first + i;
    items.push_back(part);
  }
}

}  // namespace triad
