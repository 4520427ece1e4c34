// What is let in, what is counted, and when it is given back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>
#include <thread>

#include "tests/unit/batching/fake_task.h"

namespace triad {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Code = absl::StatusCode;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(SchedulerCreateTest, RefusesOptionsThatAreOutOfRange) {
  FakeClock clock;
  const absl::Status status = Scheduler::Create({.threads = 0}, clock, /*observer=*/nullptr).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("threads"));
}

TEST(SchedulerCreateTest, NeedsNoObserver) {
  FakeClock clock;
  Ending ending;
  absl::StatusOr<std::unique_ptr<Scheduler>> scheduler = Scheduler::Create({}, clock, /*observer=*/nullptr);
  ASSERT_TRUE(scheduler.ok()) << scheduler.status();
  auto task = MakeFakeTask({}, ending);
  EXPECT_TRUE((*scheduler)->Submit(task).ok());
}

// One task runs (tokens 5 of 10), one is listed (5), one is queued: whichever state a task is in, it counts.
class SchedulerBoundsTest : public ::testing::Test {
 protected:
  void Fill(const SchedulerOptions& bounds) {
    SchedulerOptions options = bounds;
    options.threads = 1;
    options.max_batch_tokens = 10;
    options.max_inline_flop = 0;
    harness_.emplace(options);
    harness_->Submit(running_.MakeTask({.tokens = 5, .bytes = 30}));
    running_.AwaitRunning();
    harness_->Submit(MakeFakeTask({.tokens = 5, .bytes = 30}, listed_));
    queued_id_ = harness_->Submit(MakeFakeTask({.tokens = 5, .bytes = 30}, queued_));
    ASSERT_EQ(harness_->scheduler->load().queued_tasks, 1);
    ASSERT_EQ(harness_->scheduler->load().listed_tasks, 2);
    ASSERT_EQ(harness_->scheduler->load().in_flight_bytes, 90);
  }
  ~SchedulerBoundsTest() override { running_.Release(); }

  // Outlive the harness.
  Blocker running_;
  Ending listed_;
  Ending queued_;
  Ending tried_;
  TaskId queued_id_ = 0;
  std::optional<SchedulerHarness> harness_;
};

TEST_F(SchedulerBoundsTest, BytesCountQueuedListedAndRunning) {
  Fill({.max_in_flight_bytes = 100});
  auto task = MakeFakeTask({.bytes = 11}, tried_);
  EXPECT_EQ(harness_->scheduler->Submit(task).status().code(), Code::kResourceExhausted);
  EXPECT_NE(task, nullptr) << "a refused task stays with its owner";
  EXPECT_THAT(harness_->observer.refusals(), ElementsAre(Refusal::kBytes));
  EXPECT_EQ(tried_.finish_calls(), 0);
  auto fits = MakeFakeTask({.bytes = 10}, tried_);
  EXPECT_TRUE(harness_->scheduler->Submit(fits).ok());
  running_.Release();
  EXPECT_EQ(tried_.Wait(), Code::kOk);
}

TEST_F(SchedulerBoundsTest, TasksCountQueuedListedAndRunning) {
  Fill({.max_in_flight_requests = 3});
  auto task = MakeFakeTask({}, tried_);
  EXPECT_EQ(harness_->scheduler->Submit(task).status().code(), Code::kResourceExhausted);
  EXPECT_THAT(harness_->observer.refusals(), ElementsAre(Refusal::kTasks));
}

TEST_F(SchedulerBoundsTest, CancellingAQueuedTaskFreesItsBytesAtOnce) {
  Fill({.max_in_flight_bytes = 100});
  harness_->scheduler->Cancel(queued_id_);
  EXPECT_EQ(queued_.finish_calls(), 1);
  EXPECT_EQ(queued_.Wait(), Code::kCancelled);
  EXPECT_EQ(harness_->scheduler->load().in_flight_bytes, 60);
  auto task = MakeFakeTask({.bytes = 40}, tried_);
  EXPECT_TRUE(harness_->scheduler->Submit(task).ok());
}

TEST_F(SchedulerBoundsTest, TheRetryHintIsTheTimeThatWhatWaitsWillTake) {
  Fill({.max_queue_time = seconds(5)});
  EXPECT_EQ(harness_->scheduler->retry_after(), milliseconds(10)) << "no item has ended yet, so no rate is known";
  Blocker next;
  harness_->Submit(next.MakeTask({.tokens = 5, .item_flop = {0.5}}));
  Ending waiting;
  harness_->Submit(MakeFakeTask({.tokens = 1, .priority = Priority::kLow, .item_flop = {4}}, waiting));
  harness_->clock.Advance(milliseconds(500));  // the running item's one flop takes half a second
  running_.Release();
  next.AwaitRunning();
  EXPECT_EQ(harness_->scheduler->retry_after(), seconds(3)) << "1 + 1 + 4 flop wait, at 2 a second";
  next.Release();
  EXPECT_EQ(waiting.Wait(), Code::kOk);
}

TEST(SchedulerAdmissionTest, ATaskLargerThanTheBoundIsItsOwnersFault) {
  Ending ending;
  SchedulerHarness harness({.max_in_flight_bytes = 100});
  auto task = MakeFakeTask({.bytes = 101}, ending);
  EXPECT_EQ(harness.scheduler->Submit(task).status().code(), Code::kInvalidArgument);
  EXPECT_NE(task, nullptr);
}

TEST(SchedulerAdmissionTest, ADeadlineThatHasPassedIsRefusedAtTheDoor) {
  Ending ending;
  SchedulerHarness harness({});
  auto task = MakeFakeTask({.deadline = harness.clock.Now()}, ending);
  EXPECT_EQ(harness.scheduler->Submit(task).status().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(harness.observer.refusals(), ElementsAre(Refusal::kDeadline));
}

TEST(SchedulerDrainTest, RefusesNewTasksAndRunsTheAcceptedOnes) {
  Blocker blocker;
  std::deque<Ending> endings(3);
  SchedulerHarness harness({.threads = 1, .max_inline_flop = 0});
  harness.Submit(blocker.MakeTask());
  blocker.AwaitRunning();
  harness.Submit(MakeFakeTask({}, endings[0]));
  harness.Submit(MakeFakeTask({}, endings[1]));
  harness.scheduler->BeginDrain();
  auto late = MakeFakeTask({}, endings[2]);
  EXPECT_EQ(harness.scheduler->Submit(late).status().code(), Code::kUnavailable);
  EXPECT_FALSE(harness.scheduler->WaitIdle(harness.clock.Now()));
  blocker.Release();
  EXPECT_TRUE(harness.scheduler->WaitIdle(kNever));
  EXPECT_EQ(endings[0].Wait(), Code::kOk);
  EXPECT_EQ(endings[1].Wait(), Code::kOk);
  EXPECT_THAT(harness.observer.refusals(), ElementsAre(Refusal::kDraining));
}

TEST(SchedulerDrainTest, WaitingEndsAtItsDeadline) {
  Blocker blocker;
  SchedulerHarness harness({.threads = 1, .max_inline_flop = 0});
  harness.Submit(blocker.MakeTask());
  blocker.AwaitRunning();
  const Time deadline = harness.clock.Now() + seconds(30);
  std::thread waiter([&] { EXPECT_FALSE(harness.scheduler->WaitIdle(deadline)); });
  harness.clock.AdvanceTo(deadline);
  waiter.join();
  blocker.Release();
}

}  // namespace
}  // namespace triad
