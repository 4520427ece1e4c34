#include "tests/unit/batching/list_bench.h"

#include <gtest/gtest.h>

namespace triad {

ScheduledTask& ListBench::Make(const ListedSpec& spec) {
  ScheduledTask& task = tasks_.emplace_back();
  task.id = tasks_.size();
  task.priority = spec.priority;
  task.tokens = spec.tokens;
  task.share_key = spec.key;
  task.due = spec.due;
  task.flop = spec.later_flop;
  for (size_t i = 0; i < spec.item_flop.size(); ++i) {
    task.items.push_back({.item = static_cast<int64_t>(i), .flop = spec.item_flop[i]});
    task.flop += spec.item_flop[i];
  }
  return task;
}

ScheduledTask& ListBench::Queue(const ListedSpec& spec) {
  ScheduledTask& task = Make(spec);
  list.Enqueue(task);
  return task;
}

ScheduledTask& ListBench::Join(const ListedSpec& spec) {
  ScheduledTask& task = Queue(spec);
  EXPECT_EQ(list.JoinNext(), &task);
  return task;
}

void ListBench::JoinAll() {
  while (list.JoinNext() != nullptr) {
  }
}

std::vector<uint64_t> ListBench::TakeIds(size_t most) {
  std::vector<uint64_t> ids;
  while (ids.size() < most) {
    const std::optional<TakenItem> taken = Take();
    if (!taken) break;
    ids.push_back(taken->task->id);
  }
  return ids;
}

}  // namespace triad
