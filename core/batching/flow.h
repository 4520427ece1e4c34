// One flow: the tasks of one priority and share key, which is those for one version of a layer, or all that share with
// none. Which of them joins the list next, and whose item is taken next.
//
// Tasks are in classes by their size, a power of two of flop. Those of a class are served in the order in which they
// came: serving equals in turn would only make all of them as late as the last. Between classes it is fair queueing
// item by item: each is charged for the work taken of it, divided by its tasks, from a start time on, and that which
// would have the smallest charge after its next item is next (Demers, Keshav and Shenker 1989). The start time of the
// latest is the virtual time, at which those begin that had nothing to take. So a huge task has one share beside those
// of the small ones, and what is smaller than its next item and comes meanwhile goes first.
//
// Tasks with a share key are computed together: when the first item of one is taken, listed ones of the flow, none of
// which has begun, go with it, the oldest first, up to a number of tokens and as far as nobody becomes late for it.
// Those that come while a batch of their equals is computed gather for the next one.
//
// A task that has not begun when its turn comes, and would be late by now, is passed over for good: it is taken when
// nothing else of the flow is there, or ends at its deadline. Otherwise the most urgent, who are the first to be lost
// when work goes slower than it did, would each be computed alone and in vain, and make those behind them the next.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/batching/pace.h"
#include "core/batching/scheduled_task.h"

namespace triad {

// What is taken at once.
struct TakenItem {
  ScheduledTask* task = nullptr;
  ScheduledItem item;
  // Computed with `task` from now on: their items are dropped, their work is counted as its own, they keep their place.
  std::vector<ScheduledTask*> sharers;
};

// Every operation is O(log tasks + classes), of which there are at most 100, over time: each task is passed over once
// and taken once. Only an item that begins a batch costs more: it also looks at those listed, not passed over, that
// would be late in that batch, at most all that have not begun. Not thread-safe.
class Flow {
 public:
  // `id` orders flows that are otherwise alike.
  Flow(const ListBudget& budget, uint64_t id) : id_(id), budget_(budget) {}

  // Outside -> queue.
  void Enqueue(ScheduledTask& task);
  // The queued task that is to join next beside `list`; null when none is queued or has room. It is of the class whose
  // listed work will be done first; nothing overtakes it, but that oversize tasks and others do not wait for each
  // other.
  ScheduledTask* NextQueued(const ListLoad& list) const;
  // Queue -> list.
  void MoveToList(ScheduledTask& task);

  // Takes the next item. Only when has_items.
  TakenItem TakeNext(Time now, const Pace& pace);
  // Gives a listed task, all of whose items are taken, those of its next stage.
  void BeginStage(ScheduledTask& task, std::vector<ScheduledItem> items);
  // No further item of `task` will be taken; it keeps its place.
  void DropItems(ScheduledTask& task);
  // Queue or list -> outside, with the items it has left.
  void Leave(ScheduledTask& task);

  uint64_t id() const { return id_; }
  bool has_items() const;  // listed and not taken
  int64_t tasks() const { return queued_tasks_ + listed_tasks_; }
  int64_t queued_tasks() const { return queued_tasks_; }
  int64_t listed_tasks() const { return listed_tasks_; }
  double listed_flop() const;   // listed and not taken, stages to come included
  double waiting_flop() const;  // likewise, the queue included
  // What is taken of this flow until `task`, queued now, has all been, its own included, and those that will join its
  // batch after it.
  double FlopUntilDone(const ScheduledTask& task) const;

  // The work this flow has been charged for, on the virtual clock of its priority (RollingList).
  double start_time = 0;

 private:
  struct CameEarlier {
    bool operator()(const ScheduledTask* a, const ScheduledTask* b) const { return a->id < b->id; }
  };
  using Order = std::set<ScheduledTask*, CameEarlier>;

  struct SizeClass {
    int64_t tasks = 0;        // queued and listed
    double start_time = 0;    // work charged to each of them, on the virtual clock of the flow
    double waiting_flop = 0;  // not taken
    double listed_flop = 0;   // of that, listed
    double begun_flop = 0;    // of that, of tasks that have begun
    Order queue;              // within the budget
    Order oversize_queue;     // larger than the whole budget
    Order takeable;           // listed, with items left
    Order passed_over;        // likewise, but they would be late

    // What is taken next of it; not when it has nothing to take.
    ScheduledTask& first() const { return **(takeable.empty() ? passed_over : takeable).begin(); }
    // What `flop` of `task` add to start_time. A batch may compute more tasks than its class has.
    double ChargeFor(const ScheduledTask& task, double flop) const;
  };

  SizeClass& ClassOf(const ScheduledTask& task);
  Order& QueueOf(const ScheduledTask& task);
  Order& TakeableOf(const ScheduledTask& task);
  Order& ShareableOf(const ScheduledTask& task);
  // `flop` more of `task` wait, or fewer when negative.
  void AddFlop(ScheduledTask& task, double flop);
  // `task` has something to take.
  void MakeTakeable(ScheduledTask& task);
  void EndSharing(ScheduledTask& task);
  // Passes over those of `size_class` whose turn it is and who would be late.
  void PassOverLate(SizeClass& size_class, Time now, const Pace& pace);
  // Whose turn it is, of those that have something in `order`; null: none has.
  SizeClass* NextClass(Order SizeClass::*order);
  // The work of those that will join the batch of `task` after it, when `waiting_flop` of its class wait.
  double FlopOfLaterSharers(const ScheduledTask& task, double waiting_flop) const;
  std::vector<ScheduledTask*> TakeSharers(ScheduledTask& task, Time now, const Pace& pace);

  const uint64_t id_;
  const ListBudget budget_;
  double virtual_time_ = 0;
  int64_t queued_tasks_ = 0;
  int64_t listed_tasks_ = 0;
  std::map<int, SizeClass> classes_;  // by exponent; kept when empty, because what they are charged is not forgiven
  Order shareable_;                   // listed, with a share key, and have not begun
  Order passed_over_shareable_;       // likewise, but they would be late: whoever is not never looks at them
};

}  // namespace triad
