// Time as a value that tests can choose.
#pragma once

#include <chrono>

#include "core/base/mutex.h"

namespace triad {

// Monotonic. Differences are what matter; there is no relation to the time of day.
using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::nanoseconds;

// Later than any Time that occurs: "no deadline".
constexpr Time kNever = Time::max();

class Clock {
 public:
  virtual ~Clock() = default;

  virtual Time Now() const = 0;

  // Waits on `cv` until it is signalled, spuriously, or `deadline` has come on this clock. `mu` is held on entry and
  // return.
  virtual void WaitUntil(CondVar& cv, Mutex& mu, Time deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) = 0;
};

// The machine's monotonic clock. Lives as long as the process.
Clock& RealClock();

}  // namespace triad
