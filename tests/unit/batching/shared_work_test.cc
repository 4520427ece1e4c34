#include "core/batching/shared_work.h"

#include <gtest/gtest.h>

#include <chrono>

namespace triad {
namespace {

using std::chrono::seconds;

constexpr Time kStart = Time(seconds(1000));
constexpr Pace kPool = {.usual_flop_per_second = 50, .fastest_flop_per_second = 50, .threads = 2};  // 100 in a second

TEST(SharedWorkTest, GrowsUntilOneOfThemWouldBeLate) {
  SharedWork work(kStart, kPool);
  work.Add(/*flop=*/10, kStart + seconds(10));  // 800 and headroom
  EXPECT_TRUE(work.HasTimeFor(790));
  EXPECT_FALSE(work.HasTimeFor(791));
  work.Add(/*flop=*/10, kStart + seconds(1));
  EXPECT_TRUE(work.HasTimeFor(60));
  EXPECT_FALSE(work.HasTimeFor(61));
  work.Add(/*flop=*/10, kNever);
  EXPECT_FALSE(work.HasTimeFor(51));
}

TEST(SharedWorkTest, HasNoBoundWithoutDeadlinesOrPace) {
  SharedWork patient(kStart, kPool);
  patient.Add(/*flop=*/10, kNever);
  EXPECT_TRUE(patient.HasTimeFor(1e30));
  SharedWork unknown(kStart, Pace());
  unknown.Add(/*flop=*/10, kStart + seconds(1));
  EXPECT_TRUE(unknown.HasTimeFor(1e30));
}

TEST(SharedWorkTest, WhoIsLateInAnyCaseHoldsUpNobodyAndWhoIsJustInTimeSharesWithNone) {
  SharedWork late(kStart, kPool);
  late.Add(/*flop=*/101, kStart + seconds(1));
  EXPECT_TRUE(late.HasTimeFor(1e30));
  SharedWork just(kStart, kPool);
  just.Add(/*flop=*/99, kStart + seconds(1));
  EXPECT_FALSE(just.HasTimeFor(1));
}

}  // namespace
}  // namespace triad
