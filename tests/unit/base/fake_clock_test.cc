#include "tests/support/fake_clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace triad {
namespace {

using std::chrono::seconds;

TEST(FakeClockTest, MovesOnlyForwardAndOnlyWhenTold) {
  FakeClock clock(Time(seconds(5)));
  EXPECT_EQ(clock.Now(), Time(seconds(5)));
  clock.Advance(seconds(2));
  EXPECT_EQ(clock.Now(), Time(seconds(7)));
  clock.AdvanceTo(Time(seconds(6)));
  EXPECT_EQ(clock.Now(), Time(seconds(7)));
}

TEST(FakeClockTest, ReturnsAtOnceWhenTheDeadlineHasCome) {
  FakeClock clock;
  Mutex mu;
  CondVar cv;
  MutexLock lock(mu);
  clock.WaitUntil(cv, mu, clock.Now());
}

// Whatever the moment in which the other thread advances: before the wait, while it registers, or during it.
TEST(FakeClockTest, AdvancingWakesAWaiterWhoseMutexAndConditionDieRightAfter) {
  for (int round = 0; round < 500; ++round) {
    FakeClock clock;
    const Time deadline = clock.Now() + seconds(1);
    std::thread waiter([&clock, deadline] {
      Mutex mu;
      CondVar cv;
      MutexLock lock(mu);
      while (clock.Now() < deadline) clock.WaitUntil(cv, mu, deadline);
    });
    clock.Advance(seconds(1));
    waiter.join();
  }
}

TEST(RealClockTest, GoesOnAndReturnsAtTheDeadline) {
  Clock& clock = RealClock();
  const Time before = clock.Now();
  Mutex mu;
  CondVar cv;
  MutexLock lock(mu);
  const Time deadline = before + std::chrono::milliseconds(1);
  while (clock.Now() < deadline) clock.WaitUntil(cv, mu, deadline);
  EXPECT_GE(clock.Now(), deadline);
}

}  // namespace
}  // namespace triad
