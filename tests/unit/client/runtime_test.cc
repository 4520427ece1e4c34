#include "client/src/runtime.h"

#include <memory>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace triad::client {
namespace {

constexpr absl::Duration kWatch = absl::Hours(24);  // longer than a test may take: nothing below waits for it

TEST(RuntimeTest, RunAfterRunsOnAnotherThread) {
  absl::Notification ran;
  std::thread::id thread;
  RealRuntime()->RunAfter(absl::ZeroDuration(), {}, [&] {
    thread = std::this_thread::get_id();
    ran.Notify();
  });
  ran.WaitForNotification();
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(RuntimeTest, AStopRunsItEarly) {
  const auto runtime = RealRuntime();
  for (const bool stop_first : {true, false}) {
    std::stop_source stop;
    absl::Notification ran;
    if (stop_first) stop.request_stop();
    runtime->RunAfter(kWatch, stop.get_token(), [&] { ran.Notify(); });
    stop.request_stop();
    ran.WaitForNotification();
  }
}

TEST(RuntimeTest, WhatItRunsIsGoneAfterwards) {
  absl::Notification destroyed;
  struct Notifier {
    absl::Notification& destroyed;
    ~Notifier() { destroyed.Notify(); }
  };
  RealRuntime()->RunAfter(absl::ZeroDuration(), {}, [kept = std::shared_ptr<Notifier>(new Notifier{destroyed})] {});
  destroyed.WaitForNotification();
}

TEST(RuntimeTest, AStopEndsSleep) {
  std::stop_source stop;
  stop.request_stop();
  RealRuntime()->Sleep(kWatch, stop.get_token());
}

TEST(RuntimeTest, RandomStaysInItsRange) {
  const auto runtime = RealRuntime();
  for (int i = 0; i < 1000; ++i) {
    const double random = runtime->Random();
    ASSERT_GE(random, 0);
    ASSERT_LT(random, 1);
  }
}

TEST(RuntimeTest, ADeadlineCountsDown) {
  const auto runtime = RealRuntime();
  EXPECT_LE(Deadline(*runtime, absl::Seconds(1)).Remaining(*runtime), absl::Seconds(1));
  EXPECT_EQ(Deadline(*runtime, absl::InfiniteDuration()).Remaining(*runtime), absl::InfiniteDuration());
}

}  // namespace
}  // namespace triad::client
