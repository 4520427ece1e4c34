#include "core/batching/scheduled_task.h"

#include <algorithm>

namespace triad {
namespace {
constexpr double kMaxFlop = 1e30;  // nobody has that long, and sums stay far from infinity
}  // namespace

bool IsOversize(int64_t tokens, double flop, const ListBudget& budget) {
  return tokens > budget.max_tokens || flop > budget.max_flop;
}

bool HasRoom(const ListLoad& list, int64_t tokens, double flop, const ListBudget& budget) {
  if (IsOversize(tokens, flop, budget)) return list.oversize_tasks == 0;
  return list.tokens <= budget.max_tokens - tokens && list.flop + flop <= budget.max_flop;
}

double BoundedFlop(double flop) { return flop > 0 ? std::min(flop, kMaxFlop) : 0; }

std::vector<ScheduledItem> LongestFirst(const Task& task) {
  const int64_t count = task.item_count();
  std::vector<ScheduledItem> items;
  items.reserve(static_cast<size_t>(count));
  for (int64_t item = 0; item < count; ++item) {
    items.push_back({.item = item, .flop = BoundedFlop(task.item_flop(item))});
  }
  const auto longer = [](const ScheduledItem& a, const ScheduledItem& b) { return a.flop > b.flop; };
  if (!std::is_sorted(items.begin(), items.end(), longer)) std::stable_sort(items.begin(), items.end(), longer);
  return items;
}

}  // namespace triad
