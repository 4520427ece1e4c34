// Who is let in, and how long who was let in may wait. Values in, values out.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "core/batching/finish_estimate.h"
#include "core/batching/scheduler.h"

namespace triad {

// What is accepted and not yet finished.
struct InFlight {
  int64_t tasks = 0;
  int64_t bytes = 0;
};

struct AdmissionDecision {
  absl::Status status;             // OK: accepted
  std::optional<Refusal> refusal;  // for metrics; none when accepted, or when the task is at fault (INVALID_ARGUMENT)
};

// Whether a task of `bytes` with `deadline` may come in at `now`. Codes as Scheduler::Submit has them.
AdmissionDecision Admit(const InFlight& in_flight, bool is_draining, int64_t bytes, Time deadline, Time now,
                        const SchedulerOptions& options);

// Whether a task that has `left` until its deadline may come in. RESOURCE_EXHAUSTED: what goes before it would make it
// late. DEADLINE_EXCEEDED: it would be late on an idle server too, so that coming back will not help.
AdmissionDecision AdmitInTime(const FinishEstimate& estimate, Duration left);

// What the compute threads have to do.
struct PoolLoad {
  int64_t tasks = 0;         // in flight
  int64_t busy_threads = 0;  // that compute
};

// Whether the submitter itself runs a task with work of `cost`. One without items, always. A small one when nothing is
// in flight, because to hand it over would take as long; and when every compute thread is at an item, because it would
// wait longer than it takes: then not one of low priority, which waits for others, nor one that others may share.
bool RunsHere(const ScheduledTask& task, const TaskCost& cost, const PoolLoad& pool, const SchedulerOptions& options);

// When a task must be looked at again unless it has ended by then: its deadline, and while it is queued the end of
// max_queue_time.
Time NextLook(Time accepted, Time deadline, bool is_queued, const SchedulerOptions& options);

// Why a task that is looked at at `now` >= NextLook has to end: kDeadline or kQueueTime.
Refusal ExpiryReason(Time deadline, Time now);

// What a task that ends early is told; an explanation that names the option. `reason` is one that may come up after
// the task was let in: kDraining, kQueueTime, kDeadline or kCancelled.
absl::Status EarlyEnd(Refusal reason, const SchedulerOptions& options);

// What the list may hold.
ListBudget BudgetOf(const SchedulerOptions& options);

// OK, or INVALID_ARGUMENT naming the first option that is out of range.
absl::Status Validate(const SchedulerOptions& options);

}  // namespace triad
