// The rolling list against its rules in plain loops, over random lives of tasks.
#include "tests/unit/batching/list_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "tests/unit/batching/list_bench.h"

namespace triad {
namespace {

class ListModelTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  void Arrive() {
    ListedSpec spec{.item_flop = std::vector<double>(1 + random_() % 5),
                    .tokens = static_cast<int64_t>(random_() % 70)};
    for (double& flop : spec.item_flop) flop = random_() % 100;
    std::sort(spec.item_flop.rbegin(), spec.item_flop.rend());
    spec.priority = random_() % 4 == 0 ? Priority::kLow : Priority::kNormal;
    if (random_() % 3 != 0) {
      spec.key = &kLayerKeys[random_() % 3];
      spec.item_flop.resize(1);
      spec.tokens /= 8;
      spec.later_flop = random_() % 300;
    }
    if (random_() % 2 == 0) spec.due = now_ + std::chrono::milliseconds(random_() % 1000);
    ScheduledTask& task = bench_.Make(spec);
    model_.Enqueue(task);
    bench_.list.Enqueue(task);
    here_[task.id] = &task;
  }

  void Take() {
    now_ += std::chrono::milliseconds(random_() % 50);
    const std::optional<TakenItem> taken = bench_.Take(now_, kPace);
    const ListModel::Taken expected = model_.TakeNext(now_, kPace);
    ASSERT_EQ(taken ? taken->task->id : 0, expected.id);
    if (!taken) return;
    ASSERT_EQ(taken->item.item, expected.item);
    std::vector<uint64_t> sharers;
    for (const ScheduledTask* sharer : taken->sharers) sharers.push_back(sharer->id);
    ASSERT_EQ(sharers, expected.sharers);
    for (const uint64_t id : sharers) led_by_[id] = taken->task->id;
    if (taken->task->has_items_left()) return;
    if (taken->task->share_key != nullptr && made_.insert(taken->task->id).second) {  // the rest
      const double flop = taken->task->is_passed_over ? taken->task->flop : taken->task->flop_left;
      const std::vector<ScheduledItem> items(4, {.item = 0, .flop = flop / 4});
      model_.BeginStage(taken->task->id, items);
      bench_.list.BeginStage(*taken->task, items);
    } else {
      Leave(taken->task->id);
    }
  }

  // Takes out a task and those whom it computes.
  void Leave(uint64_t id) {
    std::vector<uint64_t> group = {id};
    for (const auto& [sharer, leader] : led_by_) {
      if (leader == id) group.push_back(sharer);
    }
    for (const uint64_t each : group) {
      model_.Leave(each);
      bench_.list.Leave(*here_.at(each));
      here_.erase(each);
      led_by_.erase(each);
    }
  }

  void Cancel() {
    if (here_.empty()) return;
    const uint64_t id = std::next(here_.begin(), static_cast<long>(random_() % here_.size()))->first;
    if (led_by_.count(id) == 0) Leave(id);
  }

  void Join() {
    for (;;) {
      const ScheduledTask* const joined = bench_.list.JoinNext();
      const uint64_t expected = model_.JoinNext();
      ASSERT_EQ(joined == nullptr ? 0 : joined->id, expected);
      if (joined == nullptr) return;
    }
  }

  static constexpr ListBudget kBudget = {.max_tokens = 50, .max_flop = 600, .max_shared_tokens = 20};
  static constexpr Pace kPace = {.usual_flop_per_second = 1000, .fastest_flop_per_second = 1000, .threads = 2};
  std::mt19937 random_{GetParam()};
  Time now_;
  ListBench bench_{kBudget};
  ListModel model_{kBudget};
  std::map<uint64_t, ScheduledTask*> here_;
  std::map<uint64_t, uint64_t> led_by_;  // sharer to leader
  std::set<uint64_t> made_;              // batches, by leader
};

TEST_P(ListModelTest, DoesWhatTheModelDoes) {
  SCOPED_TRACE(GetParam());
  for (int step = 0; step < 6000; ++step) {
    const bool is_busy = step % 1000 < 700;  // then it runs empty
    if (is_busy && random_() % 3 == 0) Arrive();
    if (random_() % 20 == 0) Cancel();
    Join();
    Take();
    if (HasFatalFailure()) return;
    ASSERT_NEAR(bench_.list.waiting_flop(), model_.waiting_flop(), 1e-6);
  }
  while (bench_.list.has_items() || bench_.list.queued_tasks() > 0) {
    Join();
    Take();
    if (HasFatalFailure()) return;
  }
  EXPECT_TRUE(here_.empty()) << "everything was taken: nothing starves";
  EXPECT_EQ(bench_.list.waiting_flop(), 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ListModelTest, ::testing::Range(1u, 9u));

}  // namespace
}  // namespace triad
