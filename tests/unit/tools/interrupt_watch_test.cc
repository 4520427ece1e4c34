#include "client/tools/interrupt_watch.h"

#include <signal.h>

#include <semaphore>
#include <stop_token>

#include "gtest/gtest.h"

namespace triad::tools {
namespace {

// Sends one SIGINT, and waits until the watch has taken it.
void InterruptOnce(const InterruptWatch& watch) {
  std::binary_semaphore stopped(0);
  const std::stop_callback on_stop(watch.token(), [&stopped] { stopped.release(); });
  raise(SIGINT);
  stopped.acquire();
}

TEST(InterruptWatchTest, TheFirstInterruptRequestsAStop) {
  for (int i = 0; i < 2; ++i) {  // one after another may watch
    const InterruptWatch watch;
    EXPECT_FALSE(watch.token().stop_requested());
    InterruptOnce(watch);
    EXPECT_TRUE(watch.token().stop_requested());
  }
}

TEST(InterruptWatchTest, WithoutAnInterruptNothingIsRequested) {
  std::stop_token token;
  {
    const InterruptWatch watch;
    token = watch.token();
  }
  EXPECT_FALSE(token.stop_requested());
}

TEST(InterruptWatchDeathTest, TheSecondInterruptEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const InterruptWatch watch;
        InterruptOnce(watch);
        raise(SIGINT);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

TEST(InterruptWatchDeathTest, AfterwardsAnInterruptEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        { const InterruptWatch watch; }
        raise(SIGINT);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace triad::tools
