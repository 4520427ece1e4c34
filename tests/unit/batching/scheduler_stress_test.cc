// Everything at once. Under ThreadSanitizer this is the test that counts.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <random>
#include <thread>

#include "tests/unit/batching/fake_task.h"
#include "tests/unit/batching/list_bench.h"

namespace triad {
namespace {

using std::chrono::milliseconds;

constexpr int kSubmitters = 4;
constexpr int kTasksEach = 400;

class StressTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  // Submits tasks of all kinds and cancels some.
  void SubmitAndCancel(Scheduler& scheduler, FakeClock& clock, int submitter) {
    std::mt19937 random(GetParam() * 100 + submitter);
    for (int i = 0; i < kTasksEach; ++i) {
      if (++submitted_ == kSubmitters * kTasksEach / 2) half_submitted_.Set();
      FakeTaskSpec spec{.tokens = static_cast<int64_t>(random() % 12), .bytes = static_cast<int64_t>(random() % 20)};
      spec.priority = random() % 3 == 0 ? Priority::kLow : Priority::kNormal;
      if (random() % 2 == 0) spec.deadline = clock.Now() + milliseconds(random() % 20);
      spec.item_flop.resize(random() % 5);
      for (double& flop : spec.item_flop) flop = random() % 100;
      if (random() % 3 == 0) {
        spec.share_key = &kLayerKeys[random() % 2];
        spec.item_flop.resize(1);
        spec.later_stages = {{10, 10}};
      }
      const bool is_failing = random() % 10 == 0;
      spec.run = [is_failing](int64_t item) {
        return is_failing && item == 1 ? absl::InternalError("as planned") : absl::OkStatus();
      };
      auto task = MakeFakeTask(std::move(spec), endings_[submitter * kTasksEach + i]);
      const absl::StatusOr<TaskId> id = scheduler.Submit(task);
      if (id.ok()) {
        ++accepted_;
        if (random() % 4 == 0) scheduler.Cancel(*id - random() % 3);
      }
      if (random() % 4 == 0) clock.Advance(milliseconds(1));
    }
  }

  void Run(bool stops_in_the_middle) {
    SCOPED_TRACE(GetParam());
    SchedulerHarness harness({.threads = 3,
                              .max_in_flight_bytes = 2000,
                              .max_in_flight_requests = 200,
                              .max_queue_time = milliseconds(5),
                              .max_batch_tokens = 10,
                              .max_batch_flop = 300,
                              .max_inline_flop = 20});
    std::vector<std::thread> submitters;
    for (int i = 0; i < kSubmitters; ++i) {
      submitters.emplace_back([this, &harness, i] { SubmitAndCancel(*harness.scheduler, harness.clock, i); });
    }
    if (stops_in_the_middle) {
      half_submitted_.Wait();
      harness.scheduler->Stop();
    }
    for (std::thread& submitter : submitters) submitter.join();
    EXPECT_TRUE(harness.scheduler->WaitIdle(kNever));
    EXPECT_EQ(harness.scheduler->load().in_flight_bytes, 0);
    EXPECT_EQ(harness.scheduler->load().queued_tasks + harness.scheduler->load().listed_tasks, 0);
    int finished = 0;
    for (const Ending& ending : endings_) {
      EXPECT_LE(ending.finish_calls(), 1);
      finished += ending.finish_calls();
    }
    EXPECT_EQ(finished, accepted_);
    RecordProperty("accepted", accepted_);
  }

  std::deque<Ending> endings_ = std::deque<Ending>(kSubmitters * kTasksEach);
  std::atomic<int> submitted_ = 0;
  std::atomic<int> accepted_ = 0;
  Event half_submitted_;
};

TEST_P(StressTest, EveryAcceptedTaskFinishesOnce) { Run(/*stops_in_the_middle=*/false); }
TEST_P(StressTest, EveryAcceptedTaskFinishesOnceThoughTheSchedulerStops) { Run(/*stops_in_the_middle=*/true); }

INSTANTIATE_TEST_SUITE_P(Seeds, StressTest, ::testing::Values(1u, 2u, 3u));

}  // namespace
}  // namespace triad
