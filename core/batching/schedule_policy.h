// Which queued task joins the rolling list, and which work item is taken next. Values and plain data only: no threads,
// no clock.
//
// The order is weighted fair queueing with every task a flow of its own. A priority's virtual time advances by each
// taken item's work divided by the tasks in flight: it is the work that each of them would have had by now, were the
// pool shared evenly. A task that joins the list at virtual time v gets finish times v + flop of its first item, v +
// flop of its first two, and so on, and the item with the smallest finish time goes first. So a huge task's next item
// lies a whole item ahead, and whatever is smaller than that and arrives meanwhile goes before it; yet virtual time
// moves on, and the huge task gets its share (Demers, Keshav and Shenker 1989).
//
// Tasks with one share key are computed together: when the first item of one is taken, listed tasks of its key and
// priority, none of which has begun, go with it in the same order, up to a number of tokens. So they gather for exactly
// as long as the threads are busy with other things.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/batching/task.h"

namespace triad {

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

// Whether a task of `tokens` and `flop` may join beside `list`. A task larger than the whole budget has a place of its
// own: one at a time, beside the others, so that it neither waits for an empty list nor keeps small tasks out while it
// runs. An empty list has room for any.
bool HasRoom(const ListLoad& list, int64_t tokens, double flop, const ListBudget& budget);

// One item of a task, as the list counts it.
struct ScheduledItem {
  int64_t item = 0;  // as in Task::RunItem
  double flop = 0;   // >= 0 and finite
};

// The items of the stage of `task` in the order in which they are taken: longest first, then by number. Estimates that
// are negative or no number count as 0.
std::vector<ScheduledItem> LongestFirst(const Task& task);

// A task as the list sees it. The caller owns it and keeps it in place from Enqueue to Leave.
struct ScheduledTask {
  uint64_t id = 0;  // unique; earlier ones have smaller ids
  Priority priority = Priority::kNormal;
  int64_t tokens = 0;
  double flop = 0;                   // of all items of all stages
  const void* share_key = nullptr;   // null: never shares
  std::vector<ScheduledItem> items;  // of the stage, in the order of LongestFirst; not empty when queued

  bool has_items_left() const { return next_item < items.size(); }

  // RollingList's own, not for others.
  enum class Place { kOutside, kQueue, kList } place = Place::kOutside;
  bool is_shareable = false;  // listed with a share key, and nothing of it has been taken
  double shares = 1;          // tasks that its items compute: each brings its own share of the pool
  size_t next_item = 0;       // into items
  double flop_left = 0;       // of what has not been taken, stages to come included
  double finish_time = 0;     // virtual; of the whole task while queued, of its next item while listed
};

// The queue and the list. Every operation is O(log tasks). Not thread-safe.
class RollingList {
 public:
  explicit RollingList(const ListBudget& budget) : budget_(budget) {}

  // Puts `task` into the queue.
  void Enqueue(ScheduledTask& task);

  // Moves the next queued task into the list and returns it; null when none is queued or the next one has no room. The
  // next one is that with the smallest virtual finish time of the highest priority; nothing overtakes it, but that
  // tasks within the budget and larger ones do not wait for each other. Room for a priority is what it and those above
  // leave: LOW never keeps NORMAL out.
  ScheduledTask* JoinNext();

  struct Taken {
    ScheduledTask* task = nullptr;
    ScheduledItem item;
    // Computed with `task` from now on: their items are dropped, their work is counted as its own, they keep their
    // place.
    std::vector<ScheduledTask*> sharers;
  };
  // Takes the next item of the list; nullopt when all are taken. LOW only when NORMAL has none.
  std::optional<Taken> TakeNext();

  // Gives a listed task, all of whose items are taken, those of its next stage.
  void BeginStage(ScheduledTask& task, std::vector<ScheduledItem> items);

  // No further item of `task` will be taken; it keeps its place.
  void DropItems(ScheduledTask& task);

  // Takes `task` out of queue or list, with the items it has left.
  void Leave(ScheduledTask& task);

  bool has_items() const;
  int64_t queued_tasks() const;
  int64_t listed_tasks() const;
  int64_t listed_tokens() const { return listed_tokens_; }
  double waiting_flop() const { return waiting_flop_; }  // of all items not yet taken, queued or listed

 private:
  struct FinishesEarlier {
    bool operator()(const ScheduledTask* a, const ScheduledTask* b) const;
  };
  using Order = std::set<ScheduledTask*, FinishesEarlier>;

  // All of one priority.
  struct Lane {
    double virtual_time = 0;                 // flop that each task in flight would have had by now
    int64_t tasks = 0;                       // queued and listed
    Order queue;                             // within the budget
    Order oversize_queue;                    // larger than the whole budget
    Order takeable;                          // listed, with items left
    ListLoad load;                           // listed
    std::map<const void*, Order> shareable;  // of takeable, by share key
  };

  Order& QueueOf(const ScheduledTask& task);
  Lane& LaneOf(const ScheduledTask& task) { return lanes_[static_cast<size_t>(task.priority)]; }
  bool IsOversize(const ScheduledTask& task) const;
  void MoveToList(ScheduledTask& task);
  void EndSharing(ScheduledTask& task);
  std::vector<ScheduledTask*> TakeSharers(ScheduledTask& task);
  void CountListed(const ScheduledTask& task, int sign);

  const ListBudget budget_;
  std::array<Lane, 2> lanes_;  // by Priority, highest first
  int64_t listed_tokens_ = 0;
  double waiting_flop_ = 0;
};

}  // namespace triad
