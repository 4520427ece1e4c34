// The rolling list: every accepted request's work items, taken by a pool of compute threads one at a time.
//
// There are no rounds. A request waits in the queue until the list has room (max_batch_tokens, max_batch_flop; one
// larger than either has a place of its own), joins it whole, and its items are taken in the order of RollingList
// (schedule_policy.h): priority, then flows in turn, then sizes, longest first within a request. An idle
// server therefore starts at once, and a batch grows only while the pool is busy. All decisions are pure functions in
// schedule_policy.h, admission_policy.h, finish_estimate.h and retry_hint.h; this class carries them out.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/batching/task.h"

namespace triad {

struct SchedulerOptions {
  int threads = 1;  // compute threads, >= 1
  // Added to the nice value of compute threads, 0 to 19, so that whoever takes requests in and hands replies out has a
  // core at once. They get no less of a machine that has nothing else to do.
  int niceness = 0;
  int64_t max_in_flight_bytes = int64_t{2} << 30;      // queued, listed and running together
  int64_t max_in_flight_requests = 4096;               // likewise
  Duration max_queue_time = std::chrono::seconds(10);  // then RESOURCE_EXHAUSTED
  int64_t max_batch_tokens = 16384;                    // in the list, beside one task that is larger
  double max_batch_flop = 50e9;                        // in the list; likewise
  // Of the tasks that are computed together for their share key. 1024 rows do 2048 FLOP with each weight, some 20 ns of
  // an AVX2 core, and its 4 bytes are read in some 0.2: sharing with more would only make the small wait for each
  // other.
  int64_t max_shared_tokens = 1024;
  double max_inline_flop = 5e6;        // run by the submitter itself when nothing is in flight, or no thread is free
  int64_t max_inline_bytes = 1 << 20;  // likewise; what has no flop may still write much
};

// Why a task did not run to its end, for metrics.
enum class Refusal {
  kBytes,
  kTasks,
  kDraining,
  kQueueTime,
  kDeadline,     // passed
  kWouldBeLate,  // would pass before the task is done
  kPeer,         // its client has as much here as one may; those who submit say so, not the scheduler
  kCancelled
};

// Told what happens, with no lock held, from any thread. Must be fast and must not call back.
class SchedulerObserver {
 public:
  virtual ~SchedulerObserver() = default;
  // A task joined the list beside `tasks` - 1 others; the list then held `tasks` and `tokens`. One that its submitter
  // runs is a list of its own.
  virtual void OnListed(int64_t tasks, int64_t tokens) {}
  virtual void OnRefused(Refusal reason) {}
};

// For gauges; values of one instant.
struct SchedulerLoad {
  int64_t queued_tasks = 0;  // waiting for room in the list
  int64_t listed_tasks = 0;  // in the list, running included
  int64_t in_flight_bytes = 0;
};

// Names a task for Cancel. 0 names none.
using TaskId = uint64_t;

class Scheduler {
 public:
  // `clock` and `observer` (may be null) outlive the scheduler. INVALID_ARGUMENT when an option is out of range.
  static absl::StatusOr<std::unique_ptr<Scheduler>> Create(const SchedulerOptions& options, Clock& clock,
                                                           SchedulerObserver* observer);

  virtual ~Scheduler() = default;  // as Stop

  // Takes ownership of `task` only when it returns an id; Finish will then be called once. Never waits for others.
  // Runs a small task (max_inline_*) here and calls Finish before returning, with id 0, when nothing is in flight or no
  // compute thread is free: at its deadline it ends between two items, and nobody can cancel it. Beside others that is
  // not for low priority, nor for tasks with a share key. RESOURCE_EXHAUSTED: a bound is reached, or what waits would
  // make it late; retry with back-off. UNAVAILABLE: draining. DEADLINE_EXCEEDED: it has passed already, or would even
  // on an idle server. INVALID_ARGUMENT: the task alone is larger than max_in_flight_bytes.
  virtual absl::StatusOr<TaskId> Submit(std::unique_ptr<Task>& task) = 0;

  // Ends a task early with CANCELLED: at once when it is queued, between items when it is running; one that is computed
  // with others when the last item of them all has returned. Nothing when it has ended.
  virtual void Cancel(TaskId id) = 0;

  // New tasks are refused from here on; those accepted run on.
  virtual void BeginDrain() = 0;
  // Waits until nothing is in flight, or until `deadline`. True: nothing is.
  virtual bool WaitIdle(Time deadline) = 0;
  // Ends with UNAVAILABLE what has not ended, lets running items finish, joins the threads. Idempotent. Not from a
  // task.
  virtual void Stop() = 0;

  virtual SchedulerLoad load() const = 0;
  // When a client that is refused now should come back: roughly the time in which what waits will have been computed.
  virtual Duration retry_after() const = 0;
};

}  // namespace triad
