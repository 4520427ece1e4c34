#include "core/batching/retry_hint.h"

#include <gtest/gtest.h>

namespace triad {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr RetryLimits kLimits = {.shortest = milliseconds(10), .longest = seconds(5)};

TEST(RetryHintTest, IsTheTimeInWhichThePoolComputesWhatWaits) {
  ServiceRate rate;
  rate.Add(/*flop=*/50e9, milliseconds(500));
  EXPECT_EQ(rate.flop_per_second(), 100e9);
  EXPECT_EQ(RetryAfter(/*waiting_flop=*/200e9, rate, /*threads=*/1, kLimits), seconds(2));
  EXPECT_EQ(RetryAfter(/*waiting_flop=*/200e9, rate, /*threads=*/4, kLimits), milliseconds(500));
}

TEST(RetryHintTest, StaysWithinItsLimits) {
  ServiceRate rate;
  EXPECT_EQ(RetryAfter(/*waiting_flop=*/1e12, rate, /*threads=*/1, kLimits), milliseconds(10)) << "no rate is known";
  rate.Add(/*flop=*/100, seconds(1));
  EXPECT_EQ(RetryAfter(/*waiting_flop=*/0, rate, /*threads=*/1, kLimits), milliseconds(10));
  EXPECT_EQ(RetryAfter(/*waiting_flop=*/1e30, rate, /*threads=*/1, kLimits), seconds(5));
}

TEST(ServiceRateTest, ForgetsWhatIsOld) {
  ServiceRate rate;
  for (int i = 0; i < 100; ++i) rate.Add(/*flop=*/1e9, milliseconds(100));
  EXPECT_NEAR(rate.flop_per_second(), 10e9, 1e6);
  for (int i = 0; i < 100; ++i) rate.Add(/*flop=*/1e9, milliseconds(200));
  EXPECT_NEAR(rate.flop_per_second(), 5e9, 1e6);
}

TEST(ServiceRateTest, SurvivesItemsThatTakeNoTime) {
  ServiceRate rate;
  rate.Add(/*flop=*/1e9, Duration(0));
  rate.Add(/*flop=*/1e9, Duration(-5));
  EXPECT_EQ(rate.flop_per_second(), 0);
}

}  // namespace
}  // namespace triad
