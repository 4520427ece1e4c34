// When a refused client should come back.
#pragma once

#include "core/batching/pace.h"

namespace triad {

struct RetryLimits {
  Duration shortest = std::chrono::milliseconds(10);  // more often only costs calls
  Duration longest = std::chrono::seconds(10);        // nobody waits longer in the queue, so there is room by then
};

// The time in which the pool computes what waits, within `limits`; the shortest while no pace is known.
Duration RetryAfter(double waiting_flop, const Pace& pace, const RetryLimits& limits);

}  // namespace triad
