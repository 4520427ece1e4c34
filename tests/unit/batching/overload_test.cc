// Three times more work than there is room for, by the policies alone: a small simulation with fixed arrivals. What is
// let in must be worth its work.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/batching/admission_policy.h"
#include "tests/unit/batching/list_bench.h"

namespace triad {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr double kFlopPerSecond = 100e9;  // of one thread
constexpr int kPoolThreads = 2;
constexpr Duration kLength = seconds(20);

struct Scenario {
  const char* name;
  double flop = 0.5e9;         // of a request
  int items = 4;               // of one, or of a batch
  bool is_shared = false;      // requests share batches of up to 64
  double huge_ratio = 0;       // of the requests are 40 times larger, with 10 times the time
  Duration deadline{};         // from arrival on
  Duration reply{};            // of that, what it was rounded up by, and what the answer takes to be sent
  Duration weights{};          // a batch's, to be read by all threads: the estimates know nothing of it
  double noise_ratio = 0;      // an item's time is up to this much longer or shorter
  bool is_capricious = false;  // every other second the machine does half the work
  double goodput_ratio = 0.9;  // at least; to hold
  double late_ratio = 0.1;     // at most
};

// So that a failure names it.
void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

struct Outcome {
  double goodput_ratio = 0;  // work of those answered in time, over what the pool can do
  double late_ratio = 0;     // of those let in
  int64_t most_waiting = 0;
  int64_t refused = 0;
};

class Simulation {
 public:
  explicit Simulation(const Scenario& scenario) : scenario_(scenario) {}

  Outcome Run() {
    double capacity_flop = kFlopPerSecond * kPoolThreads * std::chrono::duration<double>(kLength).count();
    if (scenario_.is_capricious) capacity_flop *= 0.75;
    const double mean_flop = scenario_.flop * (1 + scenario_.huge_ratio * 39);
    const auto gap = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(mean_flop / (3 * kFlopPerSecond * kPoolThreads)));
    Time next_arrival;
    while (now_ < Time(kLength)) {
      if (now_ >= next_arrival) {
        Arrive();
        next_arrival += gap;
      }
      Expire();
      Start();
      now_ = next_arrival;
      if (!running_.empty()) now_ = std::min(now_, running_.begin()->first);
      while (!running_.empty() && running_.begin()->first <= now_) End();
    }
    outcome_.goodput_ratio /= capacity_flop;
    outcome_.late_ratio /= static_cast<double>(accepted_);
    return outcome_;
  }

 private:
  struct Running {
    ScheduledTask* task = nullptr;
    double flop = 0;
    Time began;
  };

  void Arrive() {
    const bool is_huge = static_cast<double>(random_() % 1000) < 1000 * scenario_.huge_ratio;
    const double flop = scenario_.flop * (is_huge ? 40 : 1);
    const Duration time = scenario_.deadline * (is_huge ? 10 : 1);
    const int items = scenario_.items * (is_huge ? 40 : 1);
    ListedSpec spec{.item_flop = std::vector<double>(static_cast<size_t>(items), flop / items), .tokens = 16};
    if (scenario_.is_shared) spec = {.item_flop = {0}, .tokens = 16, .key = &kLayerKeys[0], .later_flop = flop};
    const Time deadline = now_ + time;
    spec.due = deadline - AnswerReserve(time);
    ScheduledTask& task = bench_.Make(spec);
    if (!AdmitInTime(EstimateFinish(task, &bench_.list, rate_.pace()), time).status.ok()) {
      ++outcome_.refused;
      return;
    }
    ++accepted_;
    bench_.list.Enqueue(task);
    waiting_.insert({deadline, &task});
    deadlines_[&task] = deadline;
    outcome_.most_waiting = std::max(outcome_.most_waiting, static_cast<int64_t>(waiting_.size()));
  }

  // As the scheduler: who waits is dropped at its deadline, who is computed between its items.
  void Expire() {
    while (!waiting_.empty() && waiting_.begin()->first <= now_) {
      ScheduledTask& task = *waiting_.begin()->second;
      waiting_.erase(waiting_.begin());
      ++outcome_.late_ratio;
      if (running_items_.count(&task) == 0 && led_.count(&task) == 0) bench_.list.Leave(task);
    }
  }

  void Start() {
    bench_.JoinAll();
    while (running_.size() < kPoolThreads) {
      const std::optional<TakenItem> taken = bench_.list.TakeNext(now_, rate_.pace());
      if (!taken) return;
      if (!taken->sharers.empty()) groups_[taken->task] = taken->sharers;
      led_.insert(taken->sharers.begin(), taken->sharers.end());
      ++running_items_[taken->task];
      double pace = kFlopPerSecond * (1 + scenario_.noise_ratio * (static_cast<double>(random_() % 2001) / 1000 - 1));
      if (scenario_.is_capricious && now_.time_since_epoch() / seconds(1) % 2 == 1) pace /= 2;
      const Duration weights = taken->task->share_key == nullptr ? Duration() : scenario_.weights;
      const std::chrono::duration<double> time(
          taken->item.flop / pace + std::chrono::duration<double>(weights * kPoolThreads).count() / scenario_.items);
      running_.insert({now_ + std::chrono::duration_cast<Duration>(time), {taken->task, taken->item.flop, now_}});
    }
  }

  void End() {
    const Running ended = running_.begin()->second;
    running_.erase(running_.begin());
    rate_.Add(ended.flop, now_ - ended.began);
    ScheduledTask& task = *ended.task;
    if (--running_items_.at(&task) > 0 || task.has_items_left()) return;
    std::vector<ScheduledTask*> group = groups_[&task];
    group.push_back(&task);
    if (scenario_.is_shared && made_.insert(&task).second) {  // the batch is made: now its work
      double flop = 0;
      for (const ScheduledTask* member : group) flop += member->flop;
      const auto items = static_cast<size_t>(scenario_.items);
      bench_.list.BeginStage(task, std::vector<ScheduledItem>(items, {.flop = flop / scenario_.items}));
      return;
    }
    groups_.erase(&task);
    running_items_.erase(&task);
    for (ScheduledTask* member : group) {
      const Time deadline = deadlines_.at(member);
      const bool is_late = waiting_.erase({deadline, member}) == 0;  // and was counted
      if (!is_late && now_ + scenario_.reply > deadline) ++outcome_.late_ratio;
      if (!is_late && now_ + scenario_.reply <= deadline) outcome_.goodput_ratio += member->flop;
      led_.erase(member);
      bench_.list.Leave(*member);
    }
  }

  const Scenario scenario_;
  ListBench bench_{BudgetOf({})};
  std::mt19937 random_{1};
  ServiceRate rate_{kPoolThreads};
  Time now_;
  std::multimap<Time, Running> running_;  // by their end
  std::map<ScheduledTask*, int> running_items_;
  std::map<ScheduledTask*, std::vector<ScheduledTask*>> groups_;  // by leader
  std::set<ScheduledTask*> led_;
  std::set<ScheduledTask*> made_;  // batches, by leader
  std::map<ScheduledTask*, Time> deadlines_;
  std::set<std::pair<Time, ScheduledTask*>> waiting_;  // for their end, whatever becomes of it
  int64_t accepted_ = 0;
  Outcome outcome_;
};

class OverloadTest : public ::testing::TestWithParam<Scenario> {};

TEST_P(OverloadTest, WhatIsLetInIsDoneInTime) {
  const Scenario& scenario = GetParam();
  const Outcome outcome = Simulation(scenario).Run();
  RecordProperty("outcome", std::to_string(outcome.goodput_ratio) + " in time, " + std::to_string(outcome.late_ratio) +
                                " late, " + std::to_string(outcome.most_waiting) + " waiting");
  EXPECT_GE(outcome.goodput_ratio, scenario.goodput_ratio);
  EXPECT_LE(outcome.late_ratio, scenario.late_ratio);
  EXPECT_GT(outcome.refused, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Loads, OverloadTest,
    ::testing::Values(
        Scenario{.name = "Equal", .deadline = milliseconds(100), .reply = milliseconds(2), .noise_ratio = 0.1},
        Scenario{.name = "EqualPatient", .deadline = seconds(1), .reply = milliseconds(2), .noise_ratio = 0.1},
        Scenario{.name = "EqualHasty", .deadline = milliseconds(20), .reply = milliseconds(1), .noise_ratio = 0.1},
        Scenario{.name = "Capricious",
                 .deadline = milliseconds(100),
                 .noise_ratio = 0.1,
                 .is_capricious = true,
                 .goodput_ratio = 0.95},
        Scenario{.name = "CapriciousPatient",
                 .deadline = seconds(1),
                 .noise_ratio = 0.1,
                 .is_capricious = true,
                 .goodput_ratio = 0.95,
                 .late_ratio = 0.2},
        Scenario{.name = "Shared",
                 .items = 24,
                 .is_shared = true,
                 .deadline = milliseconds(100),
                 .reply = milliseconds(2),
                 .noise_ratio = 0.1},
        Scenario{.name = "SharedPatient", .items = 24, .is_shared = true, .deadline = seconds(1), .noise_ratio = 0.1},
        Scenario{
            .name = "SharedHasty", .items = 24, .is_shared = true, .deadline = milliseconds(20), .noise_ratio = 0.1},
        Scenario{.name = "SharedCapricious",
                 .items = 24,
                 .is_shared = true,
                 .deadline = milliseconds(100),
                 .noise_ratio = 0.1,
                 .is_capricious = true,
                 .goodput_ratio = 0.95},
        Scenario{.name = "SharedOfLargeLayer",
                 .items = 24,
                 .is_shared = true,
                 .deadline = milliseconds(200),
                 .reply = milliseconds(5),
                 .weights = milliseconds(5),
                 .noise_ratio = 0.1},
        Scenario{.name = "SharedOfLargeLayerPatient",
                 .items = 24,
                 .is_shared = true,
                 .deadline = seconds(1),
                 .reply = milliseconds(25),
                 .weights = milliseconds(5),
                 .noise_ratio = 0.1},
        Scenario{.name = "SharedOfLargeLayerCapricious",
                 .items = 24,
                 .is_shared = true,
                 .deadline = seconds(1),
                 .reply = milliseconds(25),
                 .weights = milliseconds(5),
                 .noise_ratio = 0.1,
                 .is_capricious = true,
                 .goodput_ratio = 0.8,
                 .late_ratio = 0.25},
        Scenario{.name = "Mixed",
                 .huge_ratio = 0.02,
                 .deadline = milliseconds(100),
                 .noise_ratio = 0.1,
                 .goodput_ratio = 0.7},
        Scenario{.name = "MixedPatient",
                 .huge_ratio = 0.02,
                 .deadline = seconds(1),
                 .noise_ratio = 0.1,
                 .goodput_ratio = 0.7}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace triad
