#include "tests/support/fake_clock.h"

#include <algorithm>

namespace triad {

Time FakeClock::Now() const {
  MutexLock lock(mu_);
  return now_;
}

void FakeClock::WaitUntil(CondVar& cv, Mutex& mu, Time deadline) {
  Waiter waiter{.cv = cv, .mu = mu, .deadline = deadline};
  {
    MutexLock lock(mu_);
    if (deadline <= now_) return;
    waiters_.push_back(&waiter);
  }
  cv.Wait(mu);
  bool is_pinned = false;
  {
    MutexLock lock(mu_);
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &waiter));
    is_pinned = waiter.pins > 0;
  }
  if (!is_pinned) return;
  mu.Unlock();  // AdvanceTo takes it to signal
  {
    MutexLock lock(mu_);
    while (waiter.pins > 0) unpinned_.Wait(mu_);
  }
  mu.Lock();
}

void FakeClock::AdvanceTo(Time time) {
  std::vector<Waiter*> due;
  {
    MutexLock lock(mu_);
    now_ = std::max(now_, time);
    for (Waiter* waiter : waiters_) {
      if (waiter->deadline > now_) continue;
      ++waiter->pins;
      due.push_back(waiter);
    }
  }
  for (Waiter* waiter : due) {
    {
      MutexLock lock(waiter->mu);  // a waiter that has registered and not yet begun to wait would miss the signal
      waiter->cv.SignalAll();
    }
    MutexLock lock(mu_);
    --waiter->pins;
    unpinned_.SignalAll();
  }
}

}  // namespace triad
