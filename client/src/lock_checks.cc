#include "triad/lock_checks.h"

#include "absl/synchronization/mutex.h"

namespace triad::client {

void TurnOffLockOrderChecks() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

}  // namespace triad::client
