// One request as the scheduler sees it: some independent work items, and someone to tell.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "core/base/clock.h"
#include "core/base/scratch.h"

namespace triad {

enum class Priority : uint8_t { kNormal, kLow };

// What scheduling decides by. Constant from Submit on.
struct TaskCost {
  int64_t tokens = 0;  // query tokens, over all sequences
  int64_t bytes = 0;   // of request and reply, held until Finish
  double flop = 0;     // sum over the items
  // False: slower than its flop says, and so never run by the submitter itself.
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

  // Number of items, >= 0, and the estimated work of each; longest go first within a task.
  virtual int64_t item_count() const = 0;
  virtual double item_flop(int64_t item) const = 0;

  // Computes item `item`. Different items may run at once on different threads; each runs exactly once unless the task
  // ends early. A failure ends the task with that status; so does an exception (std::bad_alloc RESOURCE_EXHAUSTED,
  // others INTERNAL). `scratch` is the thread's own, already reset.
  virtual absl::Status RunItem(int64_t item, Scratch& scratch) = 0;

  // The end, called exactly once, with no lock held, after the last RunItem has returned, on whichever thread got
  // there. OK: every item ran. Otherwise CANCELLED, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED (waited too long),
  // UNAVAILABLE (stopped), or the item's own error. Must not block or throw. The scheduler destroys the task right
  // after.
  virtual void Finish(absl::Status status, const TaskTimes& times) = 0;
};

}  // namespace triad
