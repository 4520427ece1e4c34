// When a refused client should come back.
#pragma once

#include "core/base/clock.h"

namespace triad {

// How fast one compute thread has been of late, in the units of the estimates: what it includes (memory, overheads) it
// includes.
class ServiceRate {
 public:
  // An item of `flop` took `elapsed` on one thread.
  void Add(double flop, Duration elapsed);

  // 0 while nothing is known.
  double flop_per_second() const { return seconds_ > 0 ? flop_ / seconds_ : 0; }

 private:
  double flop_ = 0;     // of recent items
  double seconds_ = 0;  // that they took
};

struct RetryLimits {
  Duration shortest = std::chrono::milliseconds(10);  // more often only costs calls
  Duration longest = std::chrono::seconds(10);        // nobody waits longer in the queue, so there is room by then
};

// The time in which `threads` threads of `rate` compute what waits, within `limits`; the shortest while no rate is
// known.
Duration RetryAfter(double waiting_flop, const ServiceRate& rate, int threads, const RetryLimits& limits);

}  // namespace triad
