// Which queued task joins the rolling list, and which work item is taken next. Values and plain data only: no threads,
// no clock.
//
// Three orders, one within the other:
//
//   priority  strict: LOW is served when NORMAL has nothing
//   flow      start-time fair queueing (Goyal, Vin and Cheng 1996). A flow is what shares a share key: one version of a
//             layer, or all that share with none. Each is charged for the work taken of it, from a start time on; the
//             flow with the smallest is served next, and that is the virtual time. A flow that had nothing to take
//             begins at the virtual time, or at what it was charged, if that is later: being idle earns nothing, and a
//             thousand requests for one layer cost one for another no more than the items in progress
//   task      within the flow: classes of size by the same rule, equals in the order in which they came (flow.h)
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/batching/flow.h"
#include "core/batching/pace.h"
#include "core/batching/scheduled_task.h"

namespace triad {

// The queue and the list. Every operation costs what Flow's does, and O(flows): flows are layers in use, and few. Not
// thread-safe.
class RollingList {
 public:
  explicit RollingList(const ListBudget& budget) : budget_(budget) {}

  // Puts `task` into the queue.
  void Enqueue(ScheduledTask& task);

  // Moves the next queued task into the list and returns it; null when none is queued or the next one has no room. The
  // next one is of the highest priority, of the flow whose listed work will be done first. A flow with nothing listed
  // has a place of its own beside the budget, unless a higher priority has work there: so none waits for another to
  // leave. Room for a priority is what it and those above leave: LOW never keeps NORMAL out.
  ScheduledTask* JoinNext();

  // Takes the next item of the list; nullopt when all are taken.
  std::optional<TakenItem> TakeNext(Time now, const Pace& pace);

  // As Flow has them, for a task that is queued or listed.
  void BeginStage(ScheduledTask& task, std::vector<ScheduledItem> items);
  void DropItems(ScheduledTask& task) { task.flow->DropItems(task); }
  void Leave(ScheduledTask& task);

  // About what would be taken before the last item of `task`, were it queued now and nothing after it; its own not
  // included. `task` is outside.
  double FlopBefore(const ScheduledTask& task) const;

  bool has_items() const;
  int64_t queued_tasks() const;
  int64_t listed_tasks() const;
  int64_t listed_tokens() const { return listed_tokens_; }
  double waiting_flop() const;  // of all items not yet taken, queued or listed
  int64_t flows() const;        // remembered, those that have nothing here but are still charged included

 private:
  // All of one priority.
  struct Lane {
    double virtual_time = 0;
    int64_t tasks = 0;                  // queued and listed
    ListLoad load;                      // listed
    std::map<const void*, Flow> flows;  // by share key; those in use, and those charged for more than the virtual time

    int64_t queued_tasks() const { return tasks - load.tasks - load.oversize_tasks; }
    double waiting_flop() const;
    // Before `flow` gets something to take.
    void Activate(Flow& flow) const;
  };

  Lane& LaneOf(const ScheduledTask& task) { return lanes_[static_cast<size_t>(task.priority)]; }
  const Lane& LaneOf(const ScheduledTask& task) const { return lanes_[static_cast<size_t>(task.priority)]; }
  void CountListed(const ScheduledTask& task, int sign);

  const ListBudget budget_;
  std::array<Lane, 2> lanes_;  // by Priority, highest first
  int64_t listed_tokens_ = 0;
};

}  // namespace triad
