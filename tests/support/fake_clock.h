// Time that stands still until a test moves it.
#pragma once

#include <vector>

#include "core/base/clock.h"

namespace triad {

// Thread-safe. Outlives whatever waits on it.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(Time start = Time(std::chrono::hours(1))) : now_(start) {}

  Time Now() const override;

  // Really waits, for a signal on `cv` or for AdvanceTo to reach `deadline`: no time passes by itself.
  void WaitUntil(CondVar& cv, Mutex& mu, Time deadline) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);

  // Moves the clock and wakes those whose deadline has come; does not wait for what they do then. The caller holds none
  // of their mutexes.
  void AdvanceTo(Time time);
  void Advance(Duration duration) { AdvanceTo(Now() + duration); }

 private:
  // A thread inside WaitUntil, on whose stack it lives.
  struct Waiter {
    CondVar& cv;
    Mutex& mu;
    Time deadline;
    int pins = 0;  // AdvanceTo calls that are about to signal: `cv` and `mu` must not go away meanwhile
  };

  mutable Mutex mu_;  // never held while a waiter's mutex is being taken
  Time now_ ABSL_GUARDED_BY(mu_);
  std::vector<Waiter*> waiters_ ABSL_GUARDED_BY(mu_);
  CondVar unpinned_;
};

}  // namespace triad
