#include "core/batching/pace.h"

#include <gtest/gtest.h>

namespace triad {
namespace {

using std::chrono::milliseconds;

TEST(ServiceRateTest, IsThatOfOneThread) {
  ServiceRate rate(/*threads=*/4);
  rate.Add(/*flop=*/50e9, milliseconds(500));
  EXPECT_EQ(rate.pace().usual_flop_per_second, 100e9);
  EXPECT_EQ(rate.pace().pool_flop_per_second(), 400e9);
}

TEST(ServiceRateTest, RemembersTheFastestStretch) {
  ServiceRate rate(/*threads=*/1);
  rate.Add(/*flop=*/1e9, milliseconds(10));
  for (int i = 0; i < 1000; ++i) rate.Add(/*flop=*/1e9, milliseconds(100));
  EXPECT_NEAR(rate.pace().usual_flop_per_second, 10e9, 1e6);
  EXPECT_EQ(rate.pace().fastest_flop_per_second, 100e9);
}

TEST(ServiceRateTest, ASingleShortItemIsNoStretch) {
  ServiceRate rate(/*threads=*/1);
  rate.Add(/*flop=*/1e9, Duration(1));
  rate.Add(/*flop=*/1e9, milliseconds(1000));
  EXPECT_NEAR(rate.pace().fastest_flop_per_second, 2e9, 1e3);
}

TEST(ServiceRateTest, ForgetsWhatIsOld) {
  ServiceRate rate(/*threads=*/1);
  for (int i = 0; i < 100; ++i) rate.Add(/*flop=*/1e9, milliseconds(100));
  EXPECT_NEAR(rate.pace().usual_flop_per_second, 10e9, 1e6);
  for (int i = 0; i < 100; ++i) rate.Add(/*flop=*/1e9, milliseconds(200));
  EXPECT_NEAR(rate.pace().usual_flop_per_second, 5e9, 1e6);
}

TEST(ServiceRateTest, SurvivesItemsThatTakeNoTime) {
  ServiceRate rate(/*threads=*/1);
  rate.Add(/*flop=*/1e9, Duration(0));
  rate.Add(/*flop=*/1e9, Duration(-5));
  EXPECT_EQ(rate.pace().usual_flop_per_second, 0);
}

}  // namespace
}  // namespace triad
