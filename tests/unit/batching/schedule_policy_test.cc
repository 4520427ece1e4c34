#include "core/batching/schedule_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <map>
#include <random>
#include <string>

#include "tests/unit/batching/fake_task.h"

namespace triad {
namespace {

using ::testing::ElementsAre;

constexpr ListBudget kAmple = {.max_tokens = 1'000'000, .max_flop = 1e12};

// Tasks that live as long as the test, and a list of `budget`.
class Bench {
 public:
  explicit Bench(const ListBudget& budget = kAmple) : list(budget) {}

  ScheduledTask& Queue(int64_t tokens, std::vector<double> item_flop, Priority priority = Priority::kNormal) {
    ScheduledTask& task = tasks_.emplace_back();
    task.id = tasks_.size();
    task.priority = priority;
    task.tokens = tokens;
    for (size_t i = 0; i < item_flop.size(); ++i) {
      task.items.push_back({.item = static_cast<int64_t>(i), .flop = item_flop[i]});
      task.flop += item_flop[i];
    }
    list.Enqueue(task);
    return task;
  }

  // Queues and joins.
  ScheduledTask& Join(std::vector<double> item_flop, Priority priority = Priority::kNormal) {
    ScheduledTask& task = Queue(/*tokens=*/1, std::move(item_flop), priority);
    EXPECT_EQ(list.JoinNext(), &task);
    return task;
  }

  // The tasks whose items are taken, in order, until none is left.
  std::vector<uint64_t> TakeAll() {
    std::vector<uint64_t> ids;
    while (const auto taken = list.TakeNext()) ids.push_back(taken->task->id);
    return ids;
  }

  RollingList list;

 private:
  std::deque<ScheduledTask> tasks_;
};

TEST(HasRoomTest, KeepsTokensAndFlopWithinTheBudgetBesideOneOversizeTask) {
  constexpr ListBudget kBudget = {.max_tokens = 100, .max_flop = 1000};
  struct Case {
    ListLoad list;
    int64_t tokens;
    double flop;
    bool has_room;
  };
  const Case cases[] = {
      {{}, 1, 1, true},
      {{}, 100, 1000, true},
      {{.tasks = 1, .tokens = 60, .flop = 10}, 40, 10, true},
      {{.tasks = 1, .tokens = 60, .flop = 10}, 41, 10, false},
      {{.tasks = 1, .tokens = 1, .flop = 600}, 1, 400, true},
      {{.tasks = 1, .tokens = 1, .flop = 600}, 1, 401, false},
      {{}, 101, 1, true},
      {{}, 1, 1001, true},
      {{.tasks = 3, .tokens = 100, .flop = 1000}, 101, 1, true},  // oversize joins a full list
      {{.oversize_tasks = 1}, 101, 1, false},                     // but only one
      {{.oversize_tasks = 1}, 100, 1000, true},                   // which keeps no small one out
      {{}, std::numeric_limits<int64_t>::max(), 1, true},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(HasRoom(c.list, c.tokens, c.flop, kBudget), c.has_room)
        << c.tokens << " tokens, " << c.flop << " flop beside " << c.list.tokens << ", " << c.list.flop << " and "
        << c.list.oversize_tasks << " oversize";
  }
}

TEST(LongestFirstTest, OrdersByWorkThenByNumberAndSurvivesAbsurdEstimates) {
  Ending ending;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const auto task = MakeFakeTask({.item_flop = {5, nan, 7, 5, -3, infinity}}, ending);
  std::vector<int64_t> order;
  for (const ScheduledItem& item : LongestFirst(*task)) {
    order.push_back(item.item);
    EXPECT_GE(item.flop, 0);
    EXPECT_LT(item.flop, infinity);
  }
  EXPECT_THAT(order, ElementsAre(5, 2, 0, 3, 1, 4));
}

TEST(RollingListTest, TakesEqualTasksInTurn) {
  Bench bench;
  bench.Join({2, 2, 2});
  bench.Join({2, 2, 2});
  EXPECT_THAT(bench.TakeAll(), ElementsAre(1, 2, 1, 2, 1, 2));
}

TEST(RollingListTest, TakesTheSmallTaskBeforeTheNextItemOfAHugeOne) {
  Bench bench;
  bench.Join(std::vector<double>(1000, 100.0));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(bench.list.TakeNext()->task->id, 1u);
    ScheduledTask& small = bench.Join({1});
    EXPECT_EQ(bench.list.TakeNext()->task, &small) << i;
    bench.list.Leave(small);
  }
}

TEST(RollingListTest, GivesAHugeTaskItsShareBesideAnEndlessStreamOfSmallOnes) {
  Bench bench;
  bench.Join(std::vector<double>(100, 50.0));
  double huge_flop = 0;
  double small_flop = 0;
  bench.Join({1});
  while (small_flop < 2000) {
    const auto taken = bench.list.TakeNext();
    if (taken->task->id == 1) {
      huge_flop += taken->item.flop;
    } else {
      small_flop += taken->item.flop;
      bench.list.Leave(*taken->task);
      bench.Join({1});  // there is always one that waits
    }
  }
  EXPECT_NEAR(huge_flop / small_flop, 1.0, 0.2);
}

TEST(RollingListTest, ServesASmallTaskSoonThoughManyLargeOnesWaitInTheQueue) {
  Bench bench({.max_tokens = 100, .max_flop = 300});
  for (int i = 0; i < 50; ++i) bench.Queue(/*tokens=*/1, std::vector<double>(10, 10.0));
  while (bench.list.JoinNext() != nullptr) {
  }
  EXPECT_EQ(bench.list.listed_tasks(), 3);
  std::vector<ScheduledTask*> done;
  for (int i = 0; i < 30; ++i) {  // the three run to their end
    ScheduledTask* task = bench.list.TakeNext()->task;
    if (!task->has_items_left()) bench.list.Leave(*task);
  }
  ScheduledTask& small = bench.Queue(/*tokens=*/1, {1});
  EXPECT_EQ(bench.list.JoinNext(), &small);
}

TEST(RollingListTest, TakesLowOnlyWhenNothingNormalIsLeft) {
  Bench bench;
  bench.Join({1, 1}, Priority::kLow);
  bench.Join({500, 500}, Priority::kNormal);
  bench.Join({900}, Priority::kNormal);
  EXPECT_THAT(bench.TakeAll(), ElementsAre(2, 3, 2, 1, 1));
}

TEST(RollingListTest, LowKeepsNormalOutOfNeitherQueueNorList) {
  Bench bench({.max_tokens = 10, .max_flop = 1e9});
  ScheduledTask& low = bench.Queue(/*tokens=*/10, {1}, Priority::kLow);
  EXPECT_EQ(bench.list.JoinNext(), &low);
  ScheduledTask& waiting_low = bench.Queue(/*tokens=*/1, {1}, Priority::kLow);
  ScheduledTask& normal = bench.Queue(/*tokens=*/10, {1});
  ScheduledTask& waiting_normal = bench.Queue(/*tokens=*/1, {1});
  EXPECT_EQ(bench.list.JoinNext(), &normal);
  EXPECT_EQ(bench.list.JoinNext(), nullptr);
  bench.list.Leave(low);
  EXPECT_EQ(bench.list.JoinNext(), nullptr) << "normal work fills the list and waits, so low work does too";
  bench.list.Leave(normal);
  EXPECT_EQ(bench.list.JoinNext(), &waiting_normal);
  EXPECT_EQ(bench.list.JoinNext(), &waiting_low);
}

TEST(RollingListTest, NothingOvertakesTheNextInTheQueue) {
  Bench bench({.max_tokens = 10, .max_flop = 1e9});
  ScheduledTask& first = bench.Queue(/*tokens=*/8, {1});
  ScheduledTask& second = bench.Queue(/*tokens=*/5, {1});
  ScheduledTask& third = bench.Queue(/*tokens=*/1, {1});
  EXPECT_EQ(bench.list.JoinNext(), &first);
  EXPECT_EQ(bench.list.JoinNext(), nullptr);
  EXPECT_EQ(bench.list.queued_tasks(), 2);
  bench.list.Leave(first);
  EXPECT_EQ(bench.list.JoinNext(), &second);
  EXPECT_EQ(bench.list.JoinNext(), &third);
  EXPECT_EQ(bench.list.listed_tokens(), 6);
}

TEST(RollingListTest, OneOversizeTaskAtATimeBesideTheOthers) {
  Bench bench({.max_tokens = 10, .max_flop = 1e9});
  ScheduledTask& huge = bench.Queue(/*tokens=*/1000, {1});
  ScheduledTask& other_huge = bench.Queue(/*tokens=*/1000, {1});
  EXPECT_EQ(bench.list.JoinNext(), &huge);
  EXPECT_EQ(bench.list.JoinNext(), nullptr);
  bench.list.Leave(huge);
  EXPECT_EQ(bench.list.JoinNext(), &other_huge);
  ScheduledTask& small = bench.Queue(/*tokens=*/10, {1});
  EXPECT_EQ(bench.list.JoinNext(), &small);
}

TEST(RollingListTest, LeavingGivesBackRoomAndItems) {
  Bench bench({.max_tokens = 10, .max_flop = 1e9});
  ScheduledTask& listed = bench.Queue(/*tokens=*/10, {3, 2});
  ScheduledTask& queued = bench.Queue(/*tokens=*/10, {7});
  bench.list.JoinNext();
  EXPECT_EQ(bench.list.waiting_flop(), 12);
  bench.list.TakeNext();
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
  Bench bench({.max_tokens = 50, .max_flop = 500});
  std::map<std::pair<uint64_t, int64_t>, int> taken_times;
  std::map<uint64_t, size_t> item_counts;
  for (int step = 0; step < 20000; ++step) {
    const bool is_arriving = step < 5000 && random() % 2 == 0;
    if (is_arriving) {
      std::vector<double> item_flop(1 + random() % 6);
      for (double& flop : item_flop) flop = random() % 200;
      const Priority priority = random() % 4 == 0 ? Priority::kLow : Priority::kNormal;
      const ScheduledTask& task = bench.Queue(random() % 70, std::move(item_flop), priority);
      item_counts[task.id] = task.items.size();
    } else if (const auto taken = bench.list.TakeNext()) {
      ++taken_times[{taken->task->id, taken->item.item}];
      if (!taken->task->has_items_left()) bench.list.Leave(*taken->task);
    }
    while (bench.list.JoinNext() != nullptr) {
    }
  }
  EXPECT_EQ(bench.list.queued_tasks() + bench.list.listed_tasks(), 0);
  size_t items = 0;
  for (const auto& [id, count] : item_counts) items += count;
  EXPECT_EQ(taken_times.size(), items);
  for (const auto& [item, times] : taken_times) ASSERT_EQ(times, 1) << "task " << item.first << " item " << item.second;
}

// Two tasks that are computed together are two, and get two shares beside a third.
TEST(RollingListTest, ALeaderGetsTheSharesOfAllWhomItComputes) {
  RollingList list({.max_tokens = 100, .max_flop = 1e12, .max_shared_tokens = 10});
  const int layer = 0;
  ScheduledTask tasks[3];
  for (uint64_t i = 0; i < 3; ++i) {
    tasks[i].id = i + 1;
    tasks[i].tokens = 1;
    tasks[i].flop = 6;
    tasks[i].items = {{.item = 0, .flop = 0}};
  }
  tasks[0].share_key = tasks[1].share_key = &layer;
  tasks[2].items = std::vector<ScheduledItem>(6, {.item = 0, .flop = 1});
  for (ScheduledTask& task : tasks) list.Enqueue(task);
  for (int i = 0; i < 3; ++i) ASSERT_NE(list.JoinNext(), nullptr);
  const std::optional<RollingList::Taken> first = list.TakeNext();
  ASSERT_EQ(first->task, &tasks[0]);
  EXPECT_THAT(first->sharers, ElementsAre(&tasks[1]));
  list.BeginStage(tasks[0], std::vector<ScheduledItem>(6, {.item = 0, .flop = 1}));
  std::vector<uint64_t> ids;
  for (int i = 0; i < 9; ++i) ids.push_back(list.TakeNext()->task->id);
  EXPECT_THAT(ids, ElementsAre(1, 1, 3, 1, 1, 3, 1, 1, 3));
}

}  // namespace
}  // namespace triad
