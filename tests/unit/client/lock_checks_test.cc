#include "triad/lock_checks.h"

#include <utility>

#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"

namespace triad::client {
namespace {

// Where Abseil checks, it would abort here.
TEST(LockChecksTest, LocksMayBeTakenInAnyOrderOnceTheChecksAreOff) {
  TurnOffLockOrderChecks();
  absl::Mutex one, other;
  for (const auto& [first, second] : {std::pair{&one, &other}, std::pair{&other, &one}}) {
    absl::MutexLock outer(first);
    absl::MutexLock inner(second);
  }
}

}  // namespace
}  // namespace triad::client
