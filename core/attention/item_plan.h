// How every kernel that works in items cuts a problem: pure arithmetic, shared by planning and running.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/attention/attention_kernel.h"
#include "core/attention/attention_problem.h"

namespace triad {

// Whose row `row` of an item is, counted from the item's first.
struct RowPlace {
  int64_t query = 0;
  int64_t head = 0;
};
RowPlace PlaceOfRow(const AttentionProblem& problem, const WorkItem& item, int64_t row);

// Keys that some row of [row_begin, row_end) (rows as in WorkItem) may see; begin == end when there are none.
KeyRange KeysOfRows(const AttentionProblem& problem, const Sequence& sequence, int64_t row_begin, int64_t row_end);

// Most work of an item that has more than `step` rows, some 40 ms of an AVX2 core: whoever is smaller waits for it.
constexpr double kItemFlop = 2.5e9;

// Rows of an item: a multiple of `step`, at most `most` (a multiple too), within `flop` if `step` rows are.
struct ItemRowsRule {
  int64_t step = 1;
  int64_t most = 1;
  double flop = kItemFlop;
  int64_t most_keys = AttentionProblem::kUnbounded;  // that an item meets at once
  bool head_by_head = false;                         // a kv head's items follow each other; else the same rows' do
};
int64_t RowsPerItem(const AttentionProblem& problem, const Sequence& sequence, const ItemRowsRule& rule);

// The items of all sequences and kv heads, each with the work that `flop_of` says.
std::vector<WorkItem> PlanItems(const AttentionProblem& problem, const ItemRowsRule& rule,
                                const std::function<double(const WorkItem&)>& flop_of);

}  // namespace triad
