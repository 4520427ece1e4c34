#include "core/attention/item_plan.h"

#include <algorithm>
#include <utility>

#include "core/attention/key_range.h"
#include "core/base/dims.h"

namespace triad {

RowPlace PlaceOfRow(const AttentionProblem& problem, const WorkItem& item, int64_t row) {
  // Without divisions where there is nothing to divide: for each row of a small item they show.
  int64_t kv_head = item.kv_head;
  if (item.kv_heads > 1) {
    kv_head += row / item.rows_of_head();
    row %= item.rows_of_head();
  }
  const int64_t folded = item.row_begin + row;
  if (problem.heads == problem.kv_heads) return {.query = folded, .head = kv_head};
  const int64_t group = problem.group();
  return {.query = folded / group, .head = kv_head * group + folded % group};
}

KeyRange KeysOfRows(const AttentionProblem& problem, const Sequence& sequence, int64_t row_begin, int64_t row_end) {
  const int64_t group = problem.group();
  const int64_t query_end = std::min(CeilDiv(row_end, group), sequence.query_length);
  KeyRange keys;
  for (int64_t i = row_begin / group; i < query_end; ++i) keys = Cover(keys, problem.VisibleKeys(sequence, i));
  return keys;
}

int64_t RowsPerItem(const AttentionProblem& problem, const Sequence& sequence, const ItemRowsRule& rule) {
  const double row_flop = 2.0 * static_cast<double>(problem.qk_head_dim + problem.v_head_dim) *
                          static_cast<double>(std::clamp<int64_t>(sequence.key_length, 1, rule.most_keys));
  const auto steps = static_cast<int64_t>(rule.flop / (row_flop * static_cast<double>(rule.step)));
  return rule.step * std::clamp<int64_t>(steps, 1, rule.most / rule.step);
}

std::vector<WorkItem> PlanItems(const AttentionProblem& problem, const ItemRowsRule& rule,
                                const std::function<double(const WorkItem&)>& flop_of) {
  std::vector<WorkItem> items;
  for (size_t s = 0; s < problem.sequences.size(); ++s) {
    const int64_t rows = problem.sequences[s].q_len * problem.group();
    const int64_t item_rows = RowsPerItem(problem, problem.sequences[s], rule);
    std::vector<WorkItem> of_head;
    for (int64_t row = 0; row < rows; row += item_rows) {
      of_head.push_back(
          {.sequence = static_cast<int64_t>(s), .row_begin = row, .row_end = std::min(row + item_rows, rows)});
      of_head.back().flop = flop_of(of_head.back());
    }
    const auto add = [&](WorkItem item, int64_t kv_head) {
      item.kv_head = kv_head;
      items.push_back(std::move(item));
    };
    if (rule.head_by_head) {
      for (int64_t kv_head = 0; kv_head < problem.kv_heads; ++kv_head) {
        for (const WorkItem& item : of_head) add(item, kv_head);
      }
    } else {
      for (const WorkItem& item : of_head) {
        for (int64_t kv_head = 0; kv_head < problem.kv_heads; ++kv_head) add(item, kv_head);
      }
    }
  }
  return items;
}

}  // namespace triad
