#include "core/batching/schedule_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "tests/unit/batching/list_bench.h"

namespace triad {
namespace {

using ::testing::ElementsAre;

// In turn, both would be done as late as the second.
TEST(RollingListTest, TakesEqualTasksOneAfterTheOther) {
  ListBench bench;
  bench.Join({.item_flop = {2, 2, 2}});
  bench.Join({.item_flop = {2, 2, 2}});
  EXPECT_THAT(bench.TakeIds(), ElementsAre(1, 1, 1, 2, 2, 2));
}

TEST(RollingListTest, TakesTheSmallTaskBeforeTheNextItemOfAHugeOne) {
  ListBench bench;
  bench.Join({.item_flop = std::vector<double>(1000, 100.0)});
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(bench.Take()->task->id, 1u);
    ScheduledTask& small = bench.Join({.item_flop = {1}});
    EXPECT_EQ(bench.Take()->task, &small) << i;
    bench.list.Leave(small);
  }
}

TEST(RollingListTest, GivesAHugeTaskItsShareBesideAnEndlessStreamOfSmallOnes) {
  ListBench bench;
  bench.Join({.item_flop = std::vector<double>(100, 50.0)});
  double huge_flop = 0;
  double small_flop = 0;
  bench.Join({.item_flop = {1}});
  while (small_flop < 2000) {
    const auto taken = bench.Take();
    if (taken->task->id == 1) {
      huge_flop += taken->item.flop;
    } else {
      small_flop += taken->item.flop;
      bench.list.Leave(*taken->task);
      bench.Join({.item_flop = {1}});  // there is always one that waits
    }
  }
  EXPECT_NEAR(huge_flop / small_flop, 1.0, 0.2);
}

TEST(RollingListTest, ServesASmallTaskSoonThoughManyLargeOnesWaitInTheQueue) {
  ListBench bench({.max_tokens = 100, .max_flop = 300});
  for (int i = 0; i < 50; ++i) bench.Queue({.item_flop = std::vector<double>(10, 10.0), .tokens = 1});
  bench.JoinAll();
  EXPECT_EQ(bench.list.listed_tasks(), 3);
  std::vector<ScheduledTask*> done;
  for (int i = 0; i < 30; ++i) {  // the three run to their end
    ScheduledTask* task = bench.Take()->task;
    if (!task->has_items_left()) bench.list.Leave(*task);
  }
  ScheduledTask& small = bench.Queue({.item_flop = {1}, .tokens = 1});
  EXPECT_EQ(bench.list.JoinNext(), &small);
}

TEST(RollingListTest, TakesLowOnlyWhenNothingNormalIsLeft) {
  ListBench bench;
  bench.Join({.item_flop = {1, 1}, .priority = Priority::kLow});
  bench.Join({.item_flop = {500, 500}, .priority = Priority::kNormal});
  bench.Join({.item_flop = {900}, .priority = Priority::kNormal});
  EXPECT_THAT(bench.TakeIds(), ElementsAre(2, 2, 3, 1, 1));
}

TEST(RollingListTest, LowKeepsNormalOutOfNeitherQueueNorList) {
  ListBench bench({.max_tokens = 10, .max_flop = 1e9});
  ScheduledTask& low = bench.Queue({.item_flop = {1}, .tokens = 10, .priority = Priority::kLow});
  EXPECT_EQ(bench.list.JoinNext(), &low);
  ScheduledTask& waiting_low = bench.Queue({.item_flop = {1}, .tokens = 1, .priority = Priority::kLow});
  ScheduledTask& normal = bench.Queue({.item_flop = {1}, .tokens = 10});
  ScheduledTask& waiting_normal = bench.Queue({.item_flop = {1}, .tokens = 1});
  EXPECT_EQ(bench.list.JoinNext(), &normal);
  EXPECT_EQ(bench.list.JoinNext(), nullptr);
  bench.list.Leave(low);
  EXPECT_EQ(bench.list.JoinNext(), nullptr) << "normal work fills the list and waits, so low work does too";
  bench.list.Leave(normal);
  EXPECT_EQ(bench.list.JoinNext(), &waiting_normal);
  EXPECT_EQ(bench.list.JoinNext(), &waiting_low);
}

TEST(RollingListTest, NothingOvertakesTheNextInTheQueue) {
  ListBench bench({.max_tokens = 10, .max_flop = 1e9});
  ScheduledTask& first = bench.Queue({.item_flop = {1}, .tokens = 8});
  ScheduledTask& second = bench.Queue({.item_flop = {1}, .tokens = 5});
  ScheduledTask& third = bench.Queue({.item_flop = {1}, .tokens = 1});
  EXPECT_EQ(bench.list.JoinNext(), &first);
  EXPECT_EQ(bench.list.JoinNext(), nullptr);
  EXPECT_EQ(bench.list.queued_tasks(), 2);
  bench.list.Leave(first);
  EXPECT_EQ(bench.list.JoinNext(), &second);
  EXPECT_EQ(bench.list.JoinNext(), &third);
  EXPECT_EQ(bench.list.listed_tokens(), 6);
}

TEST(RollingListTest, OneOversizeTaskAtATimeBesideTheOthers) {
  ListBench bench({.max_tokens = 10, .max_flop = 1e9});
  ScheduledTask& huge = bench.Queue({.item_flop = {1}, .tokens = 1000});
  ScheduledTask& other_huge = bench.Queue({.item_flop = {1}, .tokens = 1000});
  EXPECT_EQ(bench.list.JoinNext(), &huge);
  EXPECT_EQ(bench.list.JoinNext(), nullptr);
  bench.list.Leave(huge);
  EXPECT_EQ(bench.list.JoinNext(), &other_huge);
  ScheduledTask& small = bench.Queue({.item_flop = {1}, .tokens = 10});
  EXPECT_EQ(bench.list.JoinNext(), &small);
}

TEST(RollingListTest, LeavingGivesBackRoomAndItems) {
  ListBench bench({.max_tokens = 10, .max_flop = 1e9});
  ScheduledTask& listed = bench.Queue({.item_flop = {3, 2}, .tokens = 10});
  ScheduledTask& queued = bench.Queue({.item_flop = {7}, .tokens = 10});
  bench.list.JoinNext();
  EXPECT_EQ(bench.list.waiting_flop(), 12);
  bench.Take();
  EXPECT_EQ(bench.list.waiting_flop(), 9);
  bench.list.DropItems(listed);
  EXPECT_FALSE(bench.list.has_items());
  EXPECT_FALSE(listed.has_items_left());
  EXPECT_EQ(bench.list.JoinNext(), nullptr) << "its running item still counts";
  bench.list.Leave(queued);
  bench.list.Leave(listed);
  EXPECT_EQ(bench.list.queued_tasks(), 0);
  EXPECT_EQ(bench.list.listed_tasks(), 0);
  EXPECT_EQ(bench.list.listed_tokens(), 0);
  EXPECT_EQ(bench.list.waiting_flop(), 0);
}

TEST(RollingListTest, TakesEveryItemOnceWhateverTheOrderOfEvents) {
  constexpr uint32_t kSeed = 20240611;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  ListBench bench({.max_tokens = 50, .max_flop = 500});
  std::map<std::pair<uint64_t, int64_t>, int> taken_times;
  std::map<uint64_t, size_t> item_counts;
  for (int step = 0; step < 20000; ++step) {
    const bool is_arriving = step < 5000 && random() % 2 == 0;
    if (is_arriving) {
      std::vector<double> item_flop(1 + random() % 6);
      for (double& flop : item_flop) flop = random() % 200;
      const Priority priority = random() % 4 == 0 ? Priority::kLow : Priority::kNormal;
      const ScheduledTask& task = bench.Queue(
          {.item_flop = std::move(item_flop), .tokens = static_cast<int64_t>(random() % 70), .priority = priority});
      item_counts[task.id] = task.items.size();
    } else if (const auto taken = bench.Take()) {
      ++taken_times[{taken->task->id, taken->item.item}];
      if (!taken->task->has_items_left()) bench.list.Leave(*taken->task);
    }
    bench.JoinAll();
  }
  EXPECT_EQ(bench.list.queued_tasks() + bench.list.listed_tasks(), 0);
  size_t items = 0;
  for (const auto& [id, count] : item_counts) items += count;
  EXPECT_EQ(taken_times.size(), items);
  for (const auto& [item, times] : taken_times) ASSERT_EQ(times, 1) << "task " << item.first << " item " << item.second;
}

}  // namespace
}  // namespace triad
