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
  const int layer = 0;  // of another flow, and so next
  harness_->Submit(next.MakeTask({.tokens = 5, .item_flop = {0.5}, .share_key = &layer}));
  Ending waiting;
  harness_->Submit(MakeFakeTask({.tokens = 1, .priority = Priority::kLow, .item_flop = {4}}, waiting));
  harness_->clock.Advance(milliseconds(500));  // the running item's one flop takes half a second
  running_.Release();
  next.AwaitRunning();
  EXPECT_EQ(harness_->scheduler->retry_after(), seconds(3)) << "1 + 1 + 4 flop wait, at 2 a second";
  next.Release();
  EXPECT_EQ(waiting.Wait(), Code::kOk);
}

// One worker that has shown its pace, 2 flop a second, and is busy with its next task, of 4 flop.
class SchedulerDeadlineTest : public ::testing::Test {
 protected:
  SchedulerDeadlineTest() : harness_({.threads = 1, .max_inline_flop = 0}) {
    FakeTaskSpec measured{.item_flop = {1}};
    measured.run = [this](int64_t) {
      harness_.clock.Advance(milliseconds(500));
      return absl::OkStatus();
    };
    harness_.Submit(MakeFakeTask(std::move(measured), first_));
    first_.Wait();
    harness_.Submit(running_.MakeTask({.item_flop = {4}}));
    running_.AwaitRunning();
  }
  ~SchedulerDeadlineTest() override { running_.Release(); }

  absl::Status Try(double flop, Duration left, Priority priority = Priority::kNormal) {
    auto task = MakeFakeTask({.priority = priority, .deadline = harness_.clock.Now() + left, .item_flop = {flop}},
                             tried_.emplace_back());
    return harness_.scheduler->Submit(task).status();
  }

  Ending first_;
  Blocker running_;
  Ending waiting_;
  std::deque<Ending> tried_;
  SchedulerHarness harness_;
};

TEST_F(SchedulerDeadlineTest, WhatWouldBeLateBehindOthersIsRefusedAtOnce) {
  harness_.Submit(MakeFakeTask({.item_flop = {4}}, waiting_));  // 2 s, and headroom of half a second
  EXPECT_EQ(Try(/*flop=*/4, milliseconds(3400)).code(), Code::kResourceExhausted);
  EXPECT_THAT(harness_.observer.refusals(), ElementsAre(Refusal::kWouldBeLate));
  EXPECT_EQ(tried_.back().finish_calls(), 0);
  EXPECT_TRUE(Try(/*flop=*/4, milliseconds(3600)).ok());
}

TEST_F(SchedulerDeadlineTest, WhatGoesFirstOrHasTimeIsLetIn) {
  harness_.Submit(MakeFakeTask({.priority = Priority::kLow, .item_flop = {400}}, waiting_));
  EXPECT_TRUE(Try(/*flop=*/4, seconds(2)).ok());
  EXPECT_FALSE(Try(/*flop=*/4, seconds(2), Priority::kLow).ok());
  auto patient = MakeFakeTask({.item_flop = {4}}, tried_.emplace_back());
  EXPECT_TRUE(harness_.scheduler->Submit(patient).ok());
}

TEST_F(SchedulerDeadlineTest, WhatNoServerCouldDoInTimeIsNotAskedToComeBack) {
  EXPECT_EQ(Try(/*flop=*/40, seconds(9)).code(), Code::kDeadlineExceeded) << "10 s at twice the pace";
  EXPECT_TRUE(Try(/*flop=*/40, seconds(11)).ok());
}

TEST(SchedulerAdmissionTest, NothingIsRefusedForTimeWhileNoPaceIsKnown) {
  Blocker blocker;
  Ending waiting;
  Ending hasty;
  SchedulerHarness harness({.threads = 1, .max_inline_flop = 0});
  harness.Submit(blocker.MakeTask());
  blocker.AwaitRunning();
  harness.Submit(MakeFakeTask({.item_flop = {1e12}}, waiting));
  harness.Submit(MakeFakeTask({.deadline = harness.clock.Now() + milliseconds(1), .item_flop = {1e12}}, hasty));
  blocker.Release();
}

// The reference kernel's flop take a hundred times as long as others'.
TEST(SchedulerAdmissionTest, WhatIsSlowForItsFlopIsNoMeasure) {
  Ending slow;
  SchedulerHarness harness({.threads = 1, .max_queue_time = seconds(5), .max_inline_flop = 0});
  FakeTaskSpec spec{.may_run_inline = false};
  spec.run = [&harness](int64_t) {
    harness.clock.Advance(seconds(100));
    return absl::OkStatus();
  };
  harness.Submit(MakeFakeTask(std::move(spec), slow));
  slow.Wait();
  Ending hasty;
  harness.Submit(MakeFakeTask({.deadline = harness.clock.Now() + milliseconds(1), .item_flop = {1e12}}, hasty));
  EXPECT_EQ(hasty.Wait(), Code::kOk);
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
