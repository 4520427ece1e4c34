// One request as the scheduler sees it: stages of independent work items, and someone to tell.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/clock.h"
#include "core/base/scratch.h"

namespace triad {

enum class Priority : uint8_t { kNormal, kLow };

// What scheduling decides by. Constant from Submit on.
struct TaskCost {
  int64_t tokens = 0;  // query tokens, over all sequences
  int64_t bytes = 0;   // of request and reply, held until Finish
  double flop = 0;     // what its items take, in flop of long products: their sum
  // False: slower than its flop says, and so never run by the submitter itself, nor taken as a measure of how fast work
  // goes.
  bool may_run_inline = true;
};

// When things happened, on the scheduler's clock.
struct TaskTimes {
  Time accepted;  // Submit
  Time started;   // its first item began; == finished when none did
  Time finished;  // its last item ended
};

class Task {
 public:
  virtual ~Task() = default;

  virtual TaskCost cost() const = 0;
  virtual Priority priority() const { return Priority::kNormal; }
  virtual Time deadline() const { return kNever; }

  // Number of items of the stage, >= 0, and the estimated work of each; longest go first within a task.
  virtual int64_t item_count() const = 0;
  virtual double item_flop(int64_t item) const = 0;

  // Computes item `item` of the stage. Different items may run at once on different threads; each runs exactly once
  // unless the task ends early. A failure ends the task with that status; so does an exception (std::bad_alloc
  // RESOURCE_EXHAUSTED, others INTERNAL). `scratch` is the thread's own, already reset.
  virtual absl::Status RunItem(int64_t item, Scratch& scratch) = 0;

  // Called after the last item of a stage has returned, with no lock held and no item running. True: item_count and
  // item_flop now tell of the next stage (which may be empty). False: there is none. Must be quick; throws nothing.
  virtual bool NextStage() { return false; }

  // Tasks with the same key, not null, may be computed together, and have one flow's share of the pool beside others;
  // those of key null have one among them. Constant. The first stage of such a task has one item.
  virtual const void* share_key() const { return nullptr; }
  // Gives this task, of which no item has run yet, the work of `others`: accepted tasks of the same key, none of whose
  // items ever runs. Called at most once, with no lock held, right before the first item. `others` stay valid until
  // the last item of this task has returned; then their Finish is told how this task ended, or that they were cancelled
  // or late, of which this task learns nothing. Must be quick; throws nothing.
  virtual void Share(absl::Span<Task* const> others) {}

  // The end, called exactly once, with no lock held, after the last RunItem has returned, on whichever thread got
  // there. OK: every item ran. Otherwise CANCELLED, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED (waited too long),
  // UNAVAILABLE (stopped), or the item's own error. Must not block or throw. The scheduler destroys the task right
  // after.
  virtual void Finish(absl::Status status, const TaskTimes& times) = 0;
};

}  // namespace triad
