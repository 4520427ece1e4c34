#include "core/batching/finish_estimate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "tests/unit/batching/list_bench.h"

namespace triad {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Pace kTwoThreads = {.usual_flop_per_second = 50, .fastest_flop_per_second = 100, .threads = 2};

TEST(AnswerReserveTest, IsAShareOfTheTimeThatIsLeftUpToABound) {
  EXPECT_EQ(AnswerReserve(milliseconds(320)), milliseconds(10));
  EXPECT_EQ(AnswerReserve(seconds(32)), milliseconds(100));
  EXPECT_EQ(AnswerReserve(Duration::max()), milliseconds(100));
  EXPECT_EQ(AnswerReserve(Duration::zero()), Duration::zero());
  EXPECT_EQ(AnswerReserve(seconds(-32)), Duration::zero());
}

TEST(LeastTimeTest, IsThatOfAllThreadsOrOfTheLongestItemOnOne) {
  struct Case {
    double flop, longest_item_flop;
    Duration least;
  };
  // Twice the fastest pace seen, 100: 200 a second and thread.
  for (const Case& c : {Case{400, 1, seconds(1)}, Case{400, 200, seconds(1)}, Case{400, 400, seconds(2)},
                        Case{0, 0, seconds(0)}, Case{1e30, 1e30, seconds(1'000'000'000)}}) {
    EXPECT_EQ(LeastTime(c.flop, c.longest_item_flop, kTwoThreads), c.least) << c.flop << ", " << c.longest_item_flop;
  }
  EXPECT_EQ(LeastTime(1e30, 1e30, Pace()), Duration::zero()) << "nothing is known, so nothing is claimed";
}

TEST(QueueTimeTest, HasHeadroom) {
  EXPECT_EQ(QueueTime(/*flop=*/80, kTwoThreads), seconds(1));
  EXPECT_EQ(QueueTime(/*flop=*/0, kTwoThreads), Duration::zero());
  EXPECT_EQ(QueueTime(/*flop=*/1e40, kTwoThreads), seconds(1'000'000'000));
  EXPECT_EQ(QueueTime(/*flop=*/1e30, Pace()), Duration::zero());
}

// What goes before a task of 8 flop, by what waits.
TEST(FlopBeforeTest, IsWhatTheOrderOfWorkPutsBeforeATask) {
  struct Case {
    const char* name;
    std::vector<ListedSpec> waiting;
    Priority priority = Priority::kNormal;
    double before = 0;
  };
  const ListedSpec equal{.item_flop = {8}};
  const ListedSpec small{.item_flop = {1}};
  const ListedSpec huge{.item_flop = std::vector<double>(10, 1000.0)};
  const ListedSpec low{.item_flop = {8}, .priority = Priority::kLow};
  const ListedSpec of_layer{.item_flop = {8}, .key = &kLayerKeys[0]};
  const ListedSpec of_other{.item_flop = {2}, .key = &kLayerKeys[1]};
  const Case cases[] = {
      {"nothing", {}, Priority::kNormal, 0},
      {"equals", {equal, equal, equal}, Priority::kNormal, 24},
      {"small ones", {small, small, small}, Priority::kNormal, 3},
      {"a huge one, in its share", {huge}, Priority::kNormal, 8},
      {"both", {huge, small, huge}, Priority::kNormal, 17},
      {"LOW never", {low, low}, Priority::kNormal, 0},
      {"all that is NORMAL goes before LOW", {huge, equal, low}, Priority::kLow, 10'016},
      {"other flows, in their share", {of_layer, of_layer, of_layer}, Priority::kNormal, 8},
      {"or what they have", {of_other, of_layer, of_layer}, Priority::kNormal, 10},
      {"a share of each for the flow as a whole",
       {equal, equal, of_layer, of_layer, of_layer, of_layer},
       Priority::kNormal,
       16 + 24},
  };
  for (const Case& c : cases) {
    ListBench bench;
    for (const ListedSpec& spec : c.waiting) bench.Queue(spec);
    const ScheduledTask& task = bench.Make({.item_flop = {8}, .priority = c.priority});
    EXPECT_EQ(bench.list.FlopBefore(task), c.before) << c.name;
    bench.JoinAll();
    EXPECT_EQ(bench.list.FlopBefore(task), c.before) << c.name << ", listed";
  }
}

// What goes before a task of 2 tokens and 8 flop that may share, by how many of its equals wait.
TEST(FlopBeforeTest, WhoSharesEndsWithThoseThatWillJoinItsBatch) {
  struct Case {
    const char* name;
    int waiting;
    int64_t max_shared_tokens;
    double before;
  };
  const Case cases[] = {
      {"nobody waits, so nobody will come meanwhile", 0, 10, 0},
      {"half of what waits", 2, 10, 16 + 8},
      {"half of its batch's room for 4 others", 6, 10, 48 + 16},
      {"nobody else fits its batch", 6, 2, 48},
      {"it is larger than a batch", 6, 1, 48},
  };
  for (const Case& c : cases) {
    ListBench bench({.max_tokens = 1000, .max_flop = 1e12, .max_shared_tokens = c.max_shared_tokens});
    const ListedSpec spec{.item_flop = {8}, .tokens = 2, .key = &kLayerKeys[0]};
    for (int i = 0; i < c.waiting; ++i) bench.Queue(spec);
    EXPECT_EQ(bench.list.FlopBefore(bench.Make(spec)), c.before) << c.name;
  }
}

TEST(FlopBeforeTest, WhatHasBeenTakenGoesBeforeNobody) {
  ListBench bench;
  bench.Join({.item_flop = {3, 2}});
  bench.Take();
  EXPECT_EQ(bench.list.FlopBefore(bench.Make({.item_flop = {8}})), 2);
}

TEST(EstimateFinishTest, PutsBothTogether) {
  ListBench bench;
  bench.Join({.item_flop = {80}});
  const FinishEstimate estimate = EstimateFinish(bench.Make({.item_flop = {80, 20}}), &bench.list, kTwoThreads);
  EXPECT_EQ(estimate.least, milliseconds(400));
  EXPECT_EQ(estimate.queued, seconds(1));
}

TEST(EstimateFinishTest, NothingGoesBeforeWhatDoesNotWait) {
  ListBench bench;
  bench.Join({.item_flop = {80}});
  const FinishEstimate estimate = EstimateFinish(bench.Make({.item_flop = {80, 20}}), nullptr, kTwoThreads);
  EXPECT_EQ(estimate.least, milliseconds(400));
  EXPECT_EQ(estimate.queued, seconds(0));
}

}  // namespace
}  // namespace triad
