#include "core/base/clock.h"

namespace triad {
namespace {

class SteadyClock final : public Clock {
 public:
  Time Now() const override { return std::chrono::steady_clock::now(); }
  void WaitUntil(CondVar& cv, Mutex& mu, Time deadline) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (deadline == kNever) {
      cv.Wait(mu);
    } else {
      cv.WaitUntil(mu, deadline);
    }
  }
};

}  // namespace

Clock& RealClock() {
  static SteadyClock* const clock = new SteadyClock;  // never destroyed: threads may outlive main's statics
  return *clock;
}

}  // namespace triad
