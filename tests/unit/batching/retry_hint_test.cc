#include "core/batching/retry_hint.h"

#include <gtest/gtest.h>

namespace triad {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr RetryLimits kLimits = {.shortest = milliseconds(10), .longest = seconds(5)};

TEST(RetryHintTest, IsTheTimeInWhichThePoolComputesWhatWaits) {
  Pace pace{.usual_flop_per_second = 100e9};
  EXPECT_EQ(RetryAfter(/*waiting_flop=*/200e9, pace, kLimits), seconds(2));
  pace.threads = 4;
  EXPECT_EQ(RetryAfter(/*waiting_flop=*/200e9, pace, kLimits), milliseconds(500));
}

TEST(RetryHintTest, StaysWithinItsLimits) {
  EXPECT_EQ(RetryAfter(/*waiting_flop=*/1e12, Pace(), kLimits), milliseconds(10)) << "no pace is known";
  const Pace pace{.usual_flop_per_second = 100};
  EXPECT_EQ(RetryAfter(/*waiting_flop=*/0, pace, kLimits), milliseconds(10));
  EXPECT_EQ(RetryAfter(/*waiting_flop=*/1e30, pace, kLimits), seconds(5));
}

}  // namespace
}  // namespace triad
