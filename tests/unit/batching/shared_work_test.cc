#include "core/batching/shared_work.h"

#include <gtest/gtest.h>

#include <chrono>

namespace triad {
namespace {

using std::chrono::seconds;

constexpr Time kStart = Time(seconds(1000));
constexpr Pace kPool = {.usual_flop_per_second = 50, .fastest_flop_per_second = 50, .threads = 2};  // 100 in a second

TEST(SharedWorkTest, GrowsUntilOneOfThemWouldBeLate) {
  SharedWork work(kStart, kPool, /*flop_before=*/0);
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
  SharedWork patient(kStart, kPool, /*flop_before=*/0);
  patient.Add(/*flop=*/10, kNever);
  EXPECT_TRUE(patient.HasTimeFor(1e30));
  SharedWork unknown(kStart, Pace(), /*flop_before=*/0);
  unknown.Add(/*flop=*/10, kStart + seconds(1));
  EXPECT_TRUE(unknown.HasTimeFor(1e30));
}

TEST(SharedWorkTest, WhoIsLateInAnyCaseHoldsUpNobodyAndWhoIsJustInTimeSharesWithNone) {
  SharedWork late(kStart, kPool, /*flop_before=*/0);
  late.Add(/*flop=*/101, kStart + seconds(1));
  EXPECT_TRUE(late.HasTimeFor(1e30));
  SharedWork just(kStart, kPool, /*flop_before=*/0);
  just.Add(/*flop=*/99, kStart + seconds(1));
  EXPECT_FALSE(just.HasTimeFor(1));
}

TEST(SharedWorkTest, WhatHasBegunGoesBeforeAllOfThem) {
  SharedWork work(kStart, kPool, /*flop_before=*/300);
  work.Add(/*flop=*/10, kStart + seconds(10));
  EXPECT_TRUE(work.HasTimeFor(490));
  EXPECT_FALSE(work.HasTimeFor(491));
}

TEST(SharedWorkTest, WhoWouldBeLateIsJudgedByThePaceOfLateWithoutHeadroom) {
  struct Case {
    const char* name;
    double flop_before;
    double flop;
    Time due;
    Pace pace;
    bool would_be_late;
  };
  const Time due = kStart + seconds(1);
  const Case cases[] = {
      {"just in time", 0, 100, due, kPool, false},
      {"late by itself", 0, 101, due, kPool, true},
      {"just in time behind what has begun", 60, 40, due, kPool, false},
      {"late behind what has begun", 60, 41, due, kPool, true},
      {"the time is over", 0, 0, kStart - seconds(1), kPool, true},
      {"never due", 1e30, 1e30, kNever, kPool, false},
      {"no pace is known", 1e30, 1e30, due, Pace(), false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(SharedWork(kStart, c.pace, c.flop_before).WouldBeLate(c.flop, c.due), c.would_be_late) << c.name;
  }
  SharedWork joined(kStart, kPool, /*flop_before=*/0);
  joined.Add(/*flop=*/60, kNever);
  EXPECT_FALSE(joined.WouldBeLate(/*flop=*/40, due));
  EXPECT_TRUE(joined.WouldBeLate(/*flop=*/41, due)) << "all of them end when the last one does";
}

}  // namespace
}  // namespace triad
