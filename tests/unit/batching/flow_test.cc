// What flows owe each other, and what their tasks do.
#include "core/batching/flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "tests/unit/batching/list_bench.h"

namespace triad {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// 1 flop takes 1 ms.
constexpr Pace kMillisecondPace = {.usual_flop_per_second = 1000, .fastest_flop_per_second = 1000, .threads = 1};

std::vector<double> Items(size_t count, double flop) { return std::vector<double>(count, flop); }

TEST(FlowsTest, ALoneRequestOfAnotherFlowIsNextWhateverWaits) {
  for (const double flop : {1.0, 10.0, 1000.0}) {
    ListBench bench({.max_tokens = 20, .max_flop = 1e12});
    for (int i = 0; i < 1000; ++i) bench.Queue({.item_flop = {10}, .key = &kLayerKeys[0]});
    bench.JoinAll();
    for (int i = 0; i < 7; ++i) {
      bench.list.Leave(*bench.Take()->task);
      bench.JoinAll();
    }
    const ScheduledTask& lone = bench.Queue({.item_flop = {flop}, .key = &kLayerKeys[1]});
    EXPECT_EQ(bench.list.JoinNext(), &lone) << "the list is full, but not of its flow";
    EXPECT_EQ(bench.list.JoinNext(), nullptr);
    EXPECT_THAT(bench.TakeIds(2), ::testing::Contains(lone.id)) << flop;
  }
}

TEST(FlowsTest, ALoneRequestWaitsForOneItemOfEachActiveFlowAtMost) {
  ListBench bench;
  for (int i = 0; i < 50; ++i) {
    for (int layer = 0; layer < 7; ++layer) bench.Queue({.item_flop = {10}, .key = &kLayerKeys[layer]});
  }
  bench.JoinAll();
  bench.TakeIds(100);
  const ScheduledTask& lone = bench.Join({.item_flop = {1000}, .key = &kLayerKeys[7]});
  EXPECT_THAT(bench.TakeIds(8), ::testing::Contains(lone.id));
}

TEST(FlowsTest, BackloggedFlowsGetEqualWorkWhateverTheirSizesAndNumbers) {
  ListBench bench;
  bench.Join({.item_flop = Items(10'000, 1)});
  for (int i = 0; i < 1000; ++i) bench.Join({.item_flop = {50}, .key = &kLayerKeys[0]});
  for (int i = 0; i < 50; ++i) bench.Join({.item_flop = {700}, .key = &kLayerKeys[1]});
  std::map<const void*, double> flop;
  double all = 0;
  while (all < 27'000) {
    const TakenItem taken = *bench.Take();
    flop[taken.task->share_key] += taken.item.flop;
    all += taken.item.flop;
  }
  for (const void* key : {static_cast<const void*>(nullptr), static_cast<const void*>(&kLayerKeys[0]),
                          static_cast<const void*>(&kLayerKeys[1])}) {
    EXPECT_NEAR(flop[key], 9'000, 700) << "within the largest item";
  }
}

TEST(FlowsTest, TheListsRoomIsSharedToo) {
  ListBench bench({.max_tokens = 100, .max_flop = 100});
  for (int i = 0; i < 100; ++i) bench.Queue({.item_flop = {2}, .key = &kLayerKeys[0]});
  for (int i = 0; i < 100; ++i) bench.Queue({.item_flop = {1}, .key = &kLayerKeys[1]});
  double flop[2] = {};
  while (const ScheduledTask* task = bench.list.JoinNext()) flop[task->share_key == &kLayerKeys[1]] += task->flop;
  EXPECT_NEAR(flop[0], flop[1], 2);
}

TEST(FlowsTest, IdlenessEarnsNothing) {
  ListBench bench;
  bench.Join({.item_flop = {1}, .key = &kLayerKeys[1]});
  for (int i = 0; i < 200; ++i) bench.Join({.item_flop = {10}, .key = &kLayerKeys[0]});
  bench.list.Leave(*bench.Take()->task);
  bench.TakeIds(100);  // 1000 flop of layer 0 while layer 1 is away
  for (int i = 0; i < 50; ++i) bench.Join({.item_flop = {10}, .key = &kLayerKeys[1]});
  int of_layer_1 = 0;
  for (int i = 0; i < 20; ++i) of_layer_1 += bench.Take()->task->share_key == &kLayerKeys[1];
  EXPECT_NEAR(of_layer_1, 10, 1);
}

// Who comes back just after each item would otherwise always stand at the virtual time, before all who wait.
TEST(FlowsTest, LeavingAndComingBackForgivesNothing) {
  ListBench bench;
  bench.Join({.item_flop = Items(1000, 10), .key = nullptr});
  double flop[2] = {};
  ScheduledTask* lone = nullptr;
  for (int i = 0; i < 110; ++i) {
    if (lone == nullptr) lone = &bench.Join({.item_flop = {100}, .key = &kLayerKeys[0]});
    const TakenItem taken = *bench.Take();
    flop[taken.task == lone] += taken.item.flop;
    if (taken.task != lone) continue;
    bench.list.Leave(*lone);
    lone = nullptr;
  }
  EXPECT_NEAR(flop[0], flop[1], 100);
}

TEST(FlowsTest, FlowsAreForgottenWhenTheyAreOwedNothing) {
  ListBench bench;
  const std::vector<int> layers(1000);
  const ScheduledTask& always = bench.Join({.item_flop = Items(10'000, 1)});
  for (const int& layer : layers) {
    bench.list.Leave(bench.Join({.item_flop = {1}, .key = &layer}));
    bench.Take();
    EXPECT_LE(bench.list.flows(), 3);
  }
  bench.list.Leave(const_cast<ScheduledTask&>(always));
  EXPECT_EQ(bench.list.flows(), 0);
}

TEST(FlowsTest, ACancelledGiantDoesNotHoldItsFlowBack) {
  ListBench bench;
  for (int i = 0; i < 100; ++i) bench.Join({.item_flop = {10}, .key = &kLayerKeys[0]});
  bench.TakeIds(1);
  bench.list.Leave(bench.Join({.item_flop = {1e11}, .key = &kLayerKeys[1]}));
  const ScheduledTask& next = bench.Join({.item_flop = {10}, .key = &kLayerKeys[1]});
  EXPECT_THAT(bench.TakeIds(2), ::testing::Contains(next.id));
}

TEST(FlowsTest, PriorityComesBeforeFlows) {
  ListBench bench({.max_tokens = 2, .max_flop = 1e12});
  for (int i = 0; i < 5; ++i) bench.Queue({.item_flop = {10}, .key = &kLayerKeys[0]});
  bench.JoinAll();
  const ScheduledTask& low = bench.Queue({.priority = Priority::kLow, .key = &kLayerKeys[1]});
  EXPECT_EQ(bench.list.JoinNext(), nullptr) << "a place of its own is nothing that LOW has beside NORMAL";
  std::vector<uint64_t> order;
  while (const std::optional<TakenItem> taken = bench.Take()) {
    order.push_back(taken->task->id);
    bench.list.Leave(*taken->task);
    bench.JoinAll();
  }
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4, 5, low.id));
}

constexpr ListBudget kSharing = {.max_tokens = 1000, .max_flop = 1e12, .max_shared_tokens = 10};

TEST(SharingTest, ABatchGoesBeforeEqualsThatCameLater) {
  ListBench bench(kSharing);
  ScheduledTask& leader = bench.Join({.item_flop = {0}, .key = &kLayerKeys[0], .later_flop = 6});
  ScheduledTask& sharer = bench.Join({.item_flop = {0}, .key = &kLayerKeys[0], .later_flop = 6});
  const TakenItem first = *bench.Take();
  ASSERT_EQ(first.task, &leader);
  ASSERT_THAT(first.sharers, ElementsAre(&sharer));
  ScheduledTask& third = bench.Join({.item_flop = {0}, .tokens = 10, .key = &kLayerKeys[0], .later_flop = 6});
  bench.list.BeginStage(leader, std::vector<ScheduledItem>(12, {.item = 0, .flop = 1}));
  while (bench.Take()->task != &third) {
  }
  EXPECT_EQ(leader.next_item, 12u);
  EXPECT_FALSE(sharer.has_items_left());
}

TEST(SharingTest, WhoArrivesWhileABatchOfEqualsIsComputedGathersForTheNext) {
  ListBench bench(kSharing);
  ScheduledTask& leader = bench.Join({.item_flop = {0}, .key = &kLayerKeys[0], .later_flop = 8});
  bench.Take();
  bench.list.BeginStage(leader, std::vector<ScheduledItem>(8, {.item = 0, .flop = 1}));
  std::vector<ScheduledTask*> later;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(bench.Take()->task, &leader);
    later.push_back(&bench.Join({.item_flop = {0}, .key = &kLayerKeys[0], .later_flop = 8}));
  }
  bench.list.Leave(leader);
  EXPECT_EQ(bench.Take()->sharers.size(), 7u);
}

// Its class is one task, and is not charged for all that it computes besides.
TEST(SharingTest, ASmallOneThatComputesManyLargeOnesDoesNotCostTheNextSmallOneItsTurn) {
  ListBench bench(kSharing);
  for (int i = 0; i < 9; ++i) bench.Join({.item_flop = {0}, .key = &kLayerKeys[0], .later_flop = i == 0 ? 1.0 : 100.0});
  ScheduledTask& leader = *bench.Take()->task;
  bench.list.BeginStage(leader, std::vector<ScheduledItem>(8, {.item = 0, .flop = 100}));
  for (int i = 0; i < 5; ++i) bench.Take();
  bench.Join({.item_flop = {0}, .tokens = 10, .key = &kLayerKeys[0], .later_flop = 100});
  ScheduledTask& small = bench.Join({.item_flop = {0}, .tokens = 10, .key = &kLayerKeys[0], .later_flop = 1});
  EXPECT_THAT(bench.TakeIds(5), ::testing::Contains(small.id));
}

TEST(SharingTest, ASmallOnePassesTheItemsOfALargeBatch) {
  ListBench bench(kSharing);
  ScheduledTask& leader = bench.Join({.item_flop = {0}, .tokens = 10, .key = &kLayerKeys[0], .later_flop = 800});
  bench.Take();
  bench.list.BeginStage(leader, std::vector<ScheduledItem>(8, {.item = 0, .flop = 100}));
  EXPECT_EQ(bench.Take()->task, &leader);
  ScheduledTask& small = bench.Join({.item_flop = {0}, .key = &kLayerKeys[0], .later_flop = 8});
  EXPECT_EQ(bench.Take()->task, &small);
}

TEST(SharingTest, OnlyAsManyShareAsTheOldestHasTimeFor) {
  ListBench bench(kSharing);
  bench.Join({.item_flop = {0}, .key = &kLayerKeys[0], .later_flop = 10, .due = Time(milliseconds(50))});
  for (int i = 0; i < 8; ++i) bench.Join({.item_flop = {0}, .key = &kLayerKeys[0], .later_flop = 10});
  EXPECT_EQ(bench.Take(Time(), kMillisecondPace)->sharers.size(), 3u) << "40 flop in 40 ms, and headroom of 10";
  EXPECT_EQ(bench.Take(Time(), kMillisecondPace)->sharers.size(), 4u) << "nobody is in a hurry";
}

TEST(SharingTest, TheNextBatchIsSmallerByWhatIsLeftOfTheOneBefore) {
  ListBench bench(kSharing);
  ScheduledTask& before = bench.Join({.item_flop = {0}, .tokens = 10, .key = &kLayerKeys[0], .later_flop = 10});
  bench.Take(Time(), kMillisecondPace);
  bench.Join({.item_flop = {0}, .key = &kLayerKeys[0], .later_flop = 10, .due = Time(milliseconds(50))});
  for (int i = 0; i < 8; ++i) bench.Join({.item_flop = {0}, .key = &kLayerKeys[0], .later_flop = 10});
  EXPECT_EQ(bench.Take(Time(), kMillisecondPace)->sharers.size(), 2u) << "40 flop in 40 ms, of which 10 are another's";
  EXPECT_EQ(before.flop_left, 10);
}

TEST(SharingTest, WhoSharesIsNotTakenAgain) {
  ListBench bench(kSharing);
  for (int i = 0; i < 4; ++i) bench.Join({.item_flop = {5}, .key = &kLayerKeys[0]});
  EXPECT_EQ(bench.list.waiting_flop(), 20);
  EXPECT_EQ(bench.Take()->sharers.size(), 3u);
  EXPECT_EQ(bench.list.waiting_flop(), 15) << "the others' work waits as the leader's";
  EXPECT_THAT(bench.TakeIds(), IsEmpty());
  EXPECT_EQ(bench.list.listed_tasks(), 4);
}

TEST(LateTest, WhoWouldBeLateIsTakenAfterEverybodyElseOfItsFlow) {
  ListBench bench;
  const ScheduledTask& late = bench.Join({.item_flop = {5, 5}, .due = Time(milliseconds(9))});
  const ScheduledTask& in_time = bench.Join({.item_flop = {5, 5}, .due = Time(milliseconds(10))});
  const ScheduledTask& patient = bench.Join({.item_flop = {5, 5}});
  const ScheduledTask& larger = bench.Join({.item_flop = {100}});
  std::vector<uint64_t> ids;
  for (int i = 0; i < 7; ++i) ids.push_back(bench.Take(Time(), kMillisecondPace)->task->id);
  EXPECT_THAT(ids, ElementsAre(in_time.id, in_time.id, patient.id, patient.id, larger.id, late.id, late.id));
}

TEST(LateTest, WhatHasBegunIsGoneOnWith) {
  ListBench bench;
  const ScheduledTask& begun = bench.Join({.item_flop = {5, 5}, .due = Time(milliseconds(10))});
  bench.Join({.item_flop = {5, 5}});
  EXPECT_EQ(bench.Take(Time(), kMillisecondPace)->task, &begun);
  EXPECT_EQ(bench.Take(Time(milliseconds(9)), kMillisecondPace)->task, &begun);
}

// At the end of a stage, when the rest of the batch is not there to be taken.
TEST(LateTest, WhatIsLeftOfABatchGoesBeforeItsEquals) {
  for (const int ms_until_due : {19, 20}) {
    ListBench bench(kSharing);
    ListedSpec spec{.item_flop = {0}, .tokens = 10, .key = &kLayerKeys[0], .later_flop = 10};
    bench.Join(spec);
    bench.Take(Time(), kMillisecondPace);
    spec.due = Time(milliseconds(ms_until_due));
    const ScheduledTask& urgent = bench.Join(spec);
    spec.due = kNever;
    const ScheduledTask& patient = bench.Join(spec);
    EXPECT_EQ(bench.Take(Time(), kMillisecondPace)->task, ms_until_due < 20 ? &patient : &urgent);
  }
}

TEST(LateTest, NobodyIsLateWhileNoPaceIsKnown) {
  ListBench bench;
  const ScheduledTask& first = bench.Join({.item_flop = {5}, .due = Time(milliseconds(1))});
  bench.Join({.item_flop = {5}});
  EXPECT_EQ(bench.Take(Time(milliseconds(2)), Pace())->task, &first);
}

TEST(LateTest, NobodyWaitsForWhatIsPassedOver) {
  ListBench bench;
  ScheduledTask& late = bench.Join({.item_flop = {8}, .due = Time(milliseconds(1))});
  bench.Join({.item_flop = {4, 4}});
  bench.Take(Time(), kMillisecondPace);
  EXPECT_EQ(bench.list.waiting_flop(), 4);
  EXPECT_EQ(bench.list.FlopBefore(bench.Make({.item_flop = {8}})), 4);
  bench.list.Leave(late);
  EXPECT_EQ(bench.list.waiting_flop(), 4);
}

TEST(LateTest, WhoWouldBeLateSharesOnlyWithOthersLikeIt) {
  ListBench bench(kSharing);
  ListedSpec spec{.item_flop = {0}, .key = &kLayerKeys[0], .later_flop = 10, .due = Time(milliseconds(9))};
  ScheduledTask& late = bench.Join(spec);
  ScheduledTask& also_late = bench.Join(spec);
  spec.due = kNever;
  ScheduledTask& patient = bench.Join(spec);
  ScheduledTask& also_patient = bench.Join(spec);
  spec.due = Time(milliseconds(25));
  ScheduledTask& late_in_this_batch = bench.Join(spec);
  const TakenItem first = *bench.Take(Time(), kMillisecondPace);
  EXPECT_EQ(first.task, &patient);
  EXPECT_THAT(first.sharers, ElementsAre(&also_patient));
  const TakenItem second = *bench.Take(Time(), kMillisecondPace);
  EXPECT_EQ(second.task, &late);
  EXPECT_THAT(second.sharers, ElementsAre(&also_late, &late_in_this_batch));
}

}  // namespace
}  // namespace triad
