// Which requests a run sends, and when they are due: drawn from a seed, or replayed from a trace.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "client/tools/bench/arrivals.h"
#include "client/tools/bench/lengths.h"
#include "client/tools/bench/workload.h"
#include "core/base/clock.h"

namespace triad::tools {

// A request that was sent once, and when it was due, counted from the run's start.
struct TraceEntry {
  Duration due = {};
  PlannedRequest request = {};
};

// One after another; called by one thread at a time. Requests never end; due times end with nullopt.
using RequestStream = std::function<PlannedRequest()>;
using DueTimes = std::function<std::optional<Duration>()>;

// How requests are drawn.
struct RequestDraw {
  LengthSpec tokens = {};
  std::optional<LengthSpec> kv_len = {};  // unset: as many keys as tokens
  uint64_t seed = 1;
};
RequestStream DrawRequests(const RequestDraw& draw);

DueTimes PlanDueTimes(ArrivalPlan plan);

// The trace's, in order; requests begin again at its end. `entries` is not empty; it is shared by the streams and the
// runs of one command.
RequestStream ReplayRequests(std::shared_ptr<const std::vector<TraceEntry>> entries);
DueTimes ReplayDueTimes(std::shared_ptr<const std::vector<TraceEntry>> entries);

// A request as long as the longest that may come.
PlannedRequest Longest(const RequestDraw& draw);
PlannedRequest Longest(const std::vector<TraceEntry>& entries);

}  // namespace triad::tools
