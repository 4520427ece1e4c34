// When a task that comes now could be done.
//
// What it needs by itself is estimated low, so that nothing is turned away that an idle server would have done in time.
// What waits before it is estimated with headroom (pace.h).
#pragma once

#include "core/batching/pace.h"
#include "core/batching/schedule_policy.h"

namespace triad {

// Of the time `left` of a request that comes now, what its answer needs to reach the caller: it has to be computed that
// long before its deadline. >= 0.
Duration AnswerReserve(Duration left);

struct FinishEstimate {
  Duration least{};   // by itself, on an idle server
  Duration queued{};  // what goes before it
};

// The least time in which all threads compute `flop` in items of at most `longest_item_flop`, of which one thread
// computes each. 0 while no pace is known.
Duration LeastTime(double flop, double longest_item_flop, const Pace& pace);

// The time, with headroom, in which all threads have computed `flop` that wait. 0 while no pace is known.
Duration QueueTime(double flop, const Pace& pace);

// For a task that is not in `list`; null: it does not wait for others.
FinishEstimate EstimateFinish(const ScheduledTask& task, const RollingList* list, const Pace& pace);

}  // namespace triad
