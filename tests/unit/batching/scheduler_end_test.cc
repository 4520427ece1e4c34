// How tasks end early: cancelled, expired, failed, stopped; at each stage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <thread>

#include "tests/unit/batching/fake_task.h"

namespace triad {
namespace {

using ::testing::ElementsAre;
using Code = absl::StatusCode;
using std::chrono::seconds;

// One worker, busy until `blocker_` is released; the list has room for it and one more.
class SchedulerEndTest : public ::testing::Test {
 protected:
  SchedulerEndTest()
      : harness_({.threads = 1, .max_queue_time = seconds(10), .max_batch_tokens = 2, .max_inline_flop = 0}) {
    harness_.Submit(blocker_.MakeTask({.item_flop = {9, 1, 1}, .run = [this](int64_t) {
                                         ++blocker_items_;
                                         return absl::OkStatus();
                                       }}));
    blocker_.AwaitRunning();
  }
  ~SchedulerEndTest() override { blocker_.Release(); }

  Time In(Duration duration) { return harness_.clock.Now() + duration; }

  std::atomic<int> blocker_items_ = 0;
  Blocker blocker_;
  Ending listed_;
  Ending queued_;
  SchedulerHarness harness_;
};

TEST_F(SchedulerEndTest, ADeadlineInTheQueueFiresWhileAllWorkersAreBusy) {
  harness_.Submit(MakeFakeTask({.tokens = 2, .deadline = In(seconds(5))}, queued_));
  ASSERT_EQ(harness_.scheduler->load().queued_tasks, 1);
  harness_.clock.Advance(seconds(5));
  EXPECT_EQ(queued_.Wait(), Code::kDeadlineExceeded);
  EXPECT_EQ(queued_.times().started, queued_.times().finished);
  EXPECT_THAT(harness_.observer.refusals(), ElementsAre(Refusal::kDeadline));
}

TEST_F(SchedulerEndTest, ADeadlineInTheListFiresWhileAllWorkersAreBusy) {
  harness_.Submit(MakeFakeTask({.deadline = In(seconds(5))}, listed_));
  ASSERT_EQ(harness_.scheduler->load().listed_tasks, 2);
  harness_.clock.Advance(seconds(5));
  EXPECT_EQ(listed_.Wait(), Code::kDeadlineExceeded);
}

TEST_F(SchedulerEndTest, AnEarlierDeadlineThatComesLaterIsNotMissed) {
  Ending later;
  harness_.Submit(MakeFakeTask({.tokens = 2, .deadline = In(seconds(8))}, later));
  harness_.Submit(MakeFakeTask({.tokens = 2, .deadline = In(seconds(1))}, queued_));
  harness_.clock.Advance(seconds(1));
  EXPECT_EQ(queued_.Wait(), Code::kDeadlineExceeded);
  EXPECT_EQ(later.finish_calls(), 0);
  harness_.clock.Advance(seconds(7));
  EXPECT_EQ(later.Wait(), Code::kDeadlineExceeded);
}

TEST_F(SchedulerEndTest, TheQueueTimeEndsOnlyWhatIsQueued) {
  harness_.Submit(MakeFakeTask({.tokens = 1}, listed_));
  harness_.Submit(MakeFakeTask({.tokens = 2}, queued_));
  harness_.clock.Advance(seconds(10));
  EXPECT_EQ(queued_.Wait(), Code::kResourceExhausted);
  EXPECT_THAT(harness_.observer.refusals(), ElementsAre(Refusal::kQueueTime));
  blocker_.Release();
  EXPECT_EQ(listed_.Wait(), Code::kOk);
}

TEST_F(SchedulerEndTest, ADeadlineStopsARunningTaskBetweenItems) {
  Blocker running;
  int items = 0;
  blocker_.Release();
  harness_.Submit(running.MakeTask({.deadline = In(seconds(5)), .item_flop = {9, 1, 1}, .run = [&items](int64_t) {
                                      ++items;
                                      return absl::OkStatus();
                                    }}));
  running.AwaitRunning();
  harness_.clock.Advance(seconds(5));
  EXPECT_EQ(running.ending().finish_calls(), 0) << "its item still runs";
  running.Release();
  EXPECT_EQ(running.ending().Wait(), Code::kDeadlineExceeded);
  EXPECT_EQ(items, 1);
}

TEST_F(SchedulerEndTest, CancelEndsARunningTaskBetweenItems) {
  Ending next;
  const TaskId id = harness_.Submit(MakeFakeTask({.tokens = 2}, next));
  harness_.scheduler->Cancel(id - 1);
  EXPECT_EQ(blocker_.ending().finish_calls(), 0) << "its item still runs";
  blocker_.Release();
  EXPECT_EQ(blocker_.ending().Wait(), Code::kCancelled);
  EXPECT_EQ(next.Wait(), Code::kOk) << "its place is free again";
  EXPECT_EQ(blocker_items_, 1);
  EXPECT_THAT(harness_.observer.refusals(), ElementsAre(Refusal::kCancelled));
}

TEST_F(SchedulerEndTest, CancelEndsAListedTaskThatHasNotStartedAtOnce) {
  harness_.scheduler->Cancel(harness_.Submit(MakeFakeTask({}, listed_)));
  EXPECT_EQ(listed_.finish_calls(), 1);
  EXPECT_EQ(listed_.Wait(), Code::kCancelled);
}

TEST_F(SchedulerEndTest, CancellingTwiceOrWhatHasEndedOrNobodyDoesNothing) {
  const TaskId id = harness_.Submit(MakeFakeTask({}, listed_));
  for (TaskId each : {id, id, TaskId{0}, TaskId{999}}) harness_.scheduler->Cancel(each);
  harness_.scheduler->Cancel(id - 1);
  harness_.scheduler->Cancel(id - 1);
  blocker_.Release();
  EXPECT_EQ(blocker_.ending().Wait(), Code::kCancelled);
  EXPECT_TRUE(harness_.scheduler->WaitIdle(kNever));
  EXPECT_EQ(listed_.finish_calls(), 1);
  EXPECT_EQ(blocker_.ending().finish_calls(), 1);
}

TEST_F(SchedulerEndTest, AFailedItemEndsItsTaskAndNoOther) {
  Ending failing;
  int items = 0;
  FakeTaskSpec spec{.item_flop = {3, 2, 1}};
  spec.run = [&items](int64_t item) {
    ++items;
    return item == 1 ? absl::DataLossError("item 1") : absl::OkStatus();
  };
  harness_.Submit(MakeFakeTask(std::move(spec), failing));
  harness_.Submit(MakeFakeTask({}, queued_));
  blocker_.Release();
  EXPECT_EQ(failing.Wait(), Code::kDataLoss);
  EXPECT_EQ(failing.Message(), "item 1");
  EXPECT_EQ(items, 2);
  EXPECT_EQ(queued_.Wait(), Code::kOk);
}

TEST_F(SchedulerEndTest, AnItemThatThrowsEndsItsTaskAndTheWorkerLivesOn) {
  Ending throwing;
  harness_.Submit(MakeFakeTask({.run = [](int64_t) -> absl::Status { throw std::bad_alloc(); }}, throwing));
  harness_.Submit(MakeFakeTask({}, queued_));
  blocker_.Release();
  EXPECT_EQ(throwing.Wait(), Code::kResourceExhausted);
  EXPECT_EQ(queued_.Wait(), Code::kOk);
}

TEST_F(SchedulerEndTest, StopEndsQueuedAndListedTasksAndLetsTheRunningItemReturn) {
  harness_.Submit(MakeFakeTask({.tokens = 1}, listed_));
  harness_.Submit(MakeFakeTask({.tokens = 2}, queued_));
  std::thread stopper([this] { harness_.scheduler->Stop(); });
  EXPECT_EQ(queued_.Wait(), Code::kUnavailable);
  EXPECT_EQ(listed_.Wait(), Code::kUnavailable);
  EXPECT_EQ(blocker_.ending().finish_calls(), 0);
  blocker_.Release();
  stopper.join();
  EXPECT_EQ(blocker_.ending().Wait(), Code::kUnavailable);
  EXPECT_EQ(blocker_items_, 1);
  harness_.scheduler->Stop();
  EXPECT_EQ(harness_.scheduler->load().in_flight_bytes, 0);
  auto late = MakeFakeTask({}, queued_);
  EXPECT_EQ(harness_.scheduler->Submit(late).status().code(), Code::kUnavailable);
}

// Finish may submit and cancel: it is called without a lock.
class Chained final : public Task {
 public:
  Chained(Scheduler& scheduler, int left, Event& done) : scheduler_(scheduler), left_(left), done_(done) {}
  TaskCost cost() const override { return {.tokens = 1, .bytes = 1, .flop = 1}; }
  int64_t item_count() const override { return 1; }
  double item_flop(int64_t) const override { return 1; }
  absl::Status RunItem(int64_t, Scratch&) override { return absl::OkStatus(); }
  void Finish(absl::Status, const TaskTimes&) override {
    if (left_ == 0) return done_.Set();
    std::unique_ptr<Task> next = std::make_unique<Chained>(scheduler_, left_ - 1, done_);
    EXPECT_TRUE(scheduler_.Submit(next).ok());
    scheduler_.Cancel(0);
  }

 private:
  Scheduler& scheduler_;
  const int left_;
  Event& done_;
};

TEST(SchedulerReentryTest, FinishMayCallTheScheduler) {
  Event done;
  SchedulerHarness harness({.threads = 1, .max_inline_flop = 0});
  harness.Submit(std::make_unique<Chained>(*harness.scheduler, /*left=*/20, done));
  done.Wait();
}

}  // namespace
}  // namespace triad
