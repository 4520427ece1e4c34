#include "core/batching/shared_work.h"

#include <gtest/gtest.h>

#include <chrono>

namespace triad {
namespace {

using std::chrono::seconds;

constexpr Time kNow = Time(seconds(1000));
constexpr Pace kPace = {.usual_flop_per_second = 50, .fastest_flop_per_second = 50, .threads = 2};  // 100 in a second

TEST(SharedWorkTest, GrowsUntilOneOfThemWouldBeLate) {
  SharedWork work(kNow, kPace);
  work.Add(/*flop=*/10, kNow + seconds(10));  // 800 and headroom
  EXPECT_TRUE(work.HasTimeFor(790));
  EXPECT_FALSE(work.HasTimeFor(791));
  work.Add(/*flop=*/10, kNow + seconds(1));
  EXPECT_TRUE(work.HasTimeFor(60));
  EXPECT_FALSE(work.HasTimeFor(61));
  work.Add(/*flop=*/10, kNever);
  EXPECT_FALSE(work.HasTimeFor(51));
}

TEST(SharedWorkTest, HasNoBoundWithoutDeadlinesOrPace) {
  SharedWork patient(kNow, kPace);
  patient.Add(/*flop=*/10, kNever);
  EXPECT_TRUE(patient.HasTimeFor(1e30));
  SharedWork unknown(kNow, Pace());
  unknown.Add(/*flop=*/10, kNow + seconds(1));
  EXPECT_TRUE(unknown.HasTimeFor(1e30));
}

TEST(SharedWorkTest, WhoIsLateInAnyCaseHoldsUpNobodyAndWhoIsJustInTimeSharesWithNone) {
  SharedWork late(kNow, kPace);
  late.Add(/*flop=*/101, kNow + seconds(1));
  EXPECT_TRUE(late.HasTimeFor(1e30));
  SharedWork just(kNow, kPace);
  just.Add(/*flop=*/99, kNow + seconds(1));
  EXPECT_FALSE(just.HasTimeFor(1));
}

}  // namespace
}  // namespace triad
