// What the scheduler keeps about an accepted task. Private to scheduler.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/batching/finish_estimate.h"
#include "core/batching/scheduled_task.h"
#include "core/batching/scheduler.h"

namespace triad {

// Whoever takes it out of RollingScheduler::entries_ calls its Finish, so that it is called once.
struct SchedulerEntry : ScheduledTask {
  std::unique_ptr<Task> task;
  int64_t bytes = 0;
  Time deadline = kNever;
  bool is_paced = true;  // takes about as long as its flop says
  TaskTimes times = {};
  bool is_started = false;
  int64_t running_items = 0;       // a change of stage counts as one
  Time look_at = kNever;           // its key in expiries_; kNever: not there
  bool is_ending = false;          // early, once its running items have returned
  absl::Status status;             // what Finish is told
  std::optional<Refusal> refusal;  // what the observer is told

  std::vector<SchedulerEntry*> sharers;  // computed with this one, and ended with it
  SchedulerEntry* leader = nullptr;      // whose sharer this is

  // The one whose items compute this one.
  SchedulerEntry& computed_by() { return leader == nullptr ? *this : *leader; }

  // This one and its sharers.
  std::vector<SchedulerEntry*> group() {
    std::vector<SchedulerEntry*> all = sharers;
    all.push_back(this);
    return all;
  }

  // Nobody waits for what this one's items compute.
  bool is_abandoned() const {
    return is_ending &&
           std::all_of(sharers.begin(), sharers.end(), [](const auto* sharer) { return sharer->is_ending; });
  }

  void SetEnd(absl::Status end_status, std::optional<Refusal> end_refusal) {
    is_ending = true;
    status = std::move(end_status);
    refusal = end_refusal;
  }
};

// What `task` says of itself; its owner moves it in later. May throw std::bad_alloc.
inline std::unique_ptr<SchedulerEntry> MakeEntry(const Task& task, Time accepted) {
  auto entry = std::make_unique<SchedulerEntry>();
  const TaskCost cost = task.cost();
  entry->priority = task.priority();
  entry->tokens = cost.tokens;
  entry->flop = BoundedFlop(cost.flop);
  entry->is_paced = cost.may_run_inline;
  entry->share_key = task.share_key();
  entry->items = LongestFirst(task);
  entry->bytes = cost.bytes;
  entry->deadline = task.deadline();
  if (entry->deadline != kNever) entry->due = entry->deadline - AnswerReserve(entry->deadline - accepted);
  entry->times.accepted = accepted;
  return entry;
}

// What happened under the lock and is to be told after it.
struct SchedulerAftermath {
  struct Listed {
    int64_t tasks = 0;
    int64_t tokens = 0;
  };
  std::vector<Listed> listed;
  std::vector<std::unique_ptr<SchedulerEntry>> ended;

  bool empty() const { return listed.empty() && ended.empty(); }
  void Clear() {
    listed.clear();
    ended.clear();
  }
};

}  // namespace triad
