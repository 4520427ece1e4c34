// A task as the rolling list sees it, and how much room the list has. Values and plain data only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/clock.h"
#include "core/batching/task.h"

namespace triad {

class Flow;

// How much the list may hold at once.
struct ListBudget {
  int64_t max_tokens = 0;
  double max_flop = 0;
  int64_t max_shared_tokens = 0;  // of the tasks that are computed together; one larger is computed alone
};

// What a part of the list holds.
struct ListLoad {
  int64_t tasks = 0;           // of those within the budget
  int64_t tokens = 0;          // likewise
  double flop = 0;             // likewise
  int64_t oversize_tasks = 0;  // larger than the whole budget by themselves
};

// Whether a task of `tokens` and `flop` is larger than the whole budget.
bool IsOversize(int64_t tokens, double flop, const ListBudget& budget);

// Whether a task of `tokens` and `flop` may join beside `list`. An oversize task has a place of its own: one at a time,
// beside the others, so that it neither waits for an empty list nor keeps small tasks out while it runs. An empty list
// has room for any.
bool HasRoom(const ListLoad& list, int64_t tokens, double flop, const ListBudget& budget);

// One item of a task, as the list counts it.
struct ScheduledItem {
  int64_t item = 0;  // as in Task::RunItem
  double flop = 0;   // >= 0 and finite
};

// An estimate by which one can order and add: 0 for what is negative or no number, and far from infinity.
double BoundedFlop(double flop);

// The items of the stage of `task` in the order in which they are taken: longest first, then by number, their flop
// bounded.
std::vector<ScheduledItem> LongestFirst(const Task& task);

// The caller owns it and keeps it in place from Enqueue to Leave.
struct ScheduledTask {
  uint64_t id = 0;  // unique; earlier ones have smaller ids
  Priority priority = Priority::kNormal;
  int64_t tokens = 0;
  double flop = 0;                   // of all items of all stages, bounded
  const void* share_key = nullptr;   // whose flow it belongs to; null: it never shares
  Time due = kNever;                 // when it has to be computed: before its deadline (AnswerReserve)
  std::vector<ScheduledItem> items;  // of the stage, in the order of LongestFirst; not empty when queued

  bool has_items_left() const { return next_item < items.size(); }

  // The list's and the flow's own, not for others.
  enum class Place { kOutside, kQueue, kList } place = Place::kOutside;
  Flow* flow = nullptr;         // from Enqueue to Leave
  bool has_begun = false;       // an item of it has been taken
  bool is_shareable = false;    // listed with a share key, and has not begun
  bool is_passed_over = false;  // it would be late: taken when nothing else of its flow is there
  int64_t shares = 1;           // tasks that its items compute
  size_t next_item = 0;         // into items
  double flop_left = 0;         // of what has not been taken, stages to come included; 0 when passed over
};

}  // namespace triad
