// Stages of one task, and tasks that are computed together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/unit/batching/fake_task.h"

namespace triad {
namespace {

using ::testing::ElementsAre;
using Code = absl::StatusCode;
using std::chrono::seconds;

const int kLayer = 0;  // its address is a share key
const int kOtherLayer = 0;

// One busy worker behind whom tasks gather until Release.
class SchedulerShareTest : public ::testing::Test {
 protected:
  SchedulerShareTest() : harness_({.threads = 1, .max_shared_tokens = 10, .max_inline_flop = 0}) {
    harness_.Submit(blocker_.MakeTask());
    blocker_.AwaitRunning();
  }

  // A task that writes "<name><item>" for each item it runs, and "<name>+<tokens>" when it is given others.
  FakeTaskSpec Sharing(const std::string& name, int64_t tokens = 1, const void* key = &kLayer) {
    return {.tokens = tokens,
            .later_stages = {{1, 1}},
            .run =
                [this, name](int64_t item) {
                  journal_.Write(absl::StrCat(name, item));
                  return absl::OkStatus();
                },
            .share_key = key,
            .on_share = [this, name](int64_t others) { journal_.Write(absl::StrCat(name, "+", others)); }};
  }
  TaskId Submit(FakeTaskSpec spec, Ending& ending) { return harness_.Submit(MakeFakeTask(std::move(spec), ending)); }

  Journal journal_;
  Blocker blocker_;
  std::deque<Ending> endings_{4};
  SchedulerHarness harness_;
};

TEST_F(SchedulerShareTest, StagesRunOneAfterAnotherAndAnEmptyOneIsPassedOver) {
  Ending ending;
  Submit({.item_flop = {1, 2}, .later_stages = {{}, {5, 4, 6}, {}}, .run = Sharing("").run}, ending);
  blocker_.Release();
  EXPECT_EQ(ending.Wait(), Code::kOk);
  EXPECT_THAT(journal_.lines(), ElementsAre("1", "0", "4", "2", "3"));
}

TEST_F(SchedulerShareTest, TasksOfAKeyThatWaitTogetherAreComputedByTheFirst) {
  for (int i = 0; i < 3; ++i) Submit(Sharing(absl::StrCat("t", i)), endings_[static_cast<size_t>(i)]);
  blocker_.Release();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(endings_[static_cast<size_t>(i)].Wait(), Code::kOk);
  EXPECT_THAT(journal_.lines(), ElementsAre("t0+2", "t00", "t01", "t02"));
  EXPECT_EQ(endings_[2].times().started, endings_[0].times().started);
  EXPECT_TRUE(harness_.scheduler->WaitIdle(kNever));
  EXPECT_EQ(harness_.scheduler->load().in_flight_bytes, 0);
}

TEST_F(SchedulerShareTest, OtherKeysAndPrioritiesAndWhatIsTooManyTokensStayApart) {
  FakeTaskSpec low = Sharing("low");
  low.priority = Priority::kLow;
  Submit(Sharing("a", /*tokens=*/6), endings_[0]);
  Submit(Sharing("b", /*tokens=*/5), endings_[1]);
  Submit(Sharing("c", /*tokens=*/1, &kOtherLayer), endings_[2]);
  Submit(std::move(low), endings_[3]);
  blocker_.Release();
  for (Ending& ending : endings_) EXPECT_EQ(ending.Wait(), Code::kOk);
  for (const std::string& line : journal_.lines()) EXPECT_EQ(line.find('+'), std::string::npos) << line;
}

TEST_F(SchedulerShareTest, AnItemThatFailsEndsEveryoneWhomItComputed) {
  FakeTaskSpec failing = Sharing("t0");
  failing.run = [](int64_t item) { return item == 1 ? absl::InternalError("broken") : absl::OkStatus(); };
  Submit(std::move(failing), endings_[0]);
  Submit(Sharing("t1"), endings_[1]);
  blocker_.Release();
  EXPECT_EQ(endings_[0].Wait(), Code::kInternal);
  EXPECT_EQ(endings_[1].Wait(), Code::kInternal);
  EXPECT_EQ(endings_[1].Message(), "broken");
}

TEST_F(SchedulerShareTest, WhoIsCancelledWhileWaitingIsNotComputed) {
  Submit(Sharing("t0"), endings_[0]);
  const TaskId id = Submit(Sharing("t1"), endings_[1]);
  harness_.scheduler->Cancel(id);
  EXPECT_EQ(endings_[1].Wait(), Code::kCancelled);
  blocker_.Release();
  EXPECT_EQ(endings_[0].Wait(), Code::kOk);
  EXPECT_THAT(journal_.lines(), ElementsAre("t00", "t01", "t02"));
}

// Cancels `victim` of two that are computed together while they run; the other's answer is none the worse.
class CancelOneOfTwoTest : public SchedulerShareTest, public ::testing::WithParamInterface<size_t> {};

TEST_P(CancelOneOfTwoTest, TheOtherIsComputedToItsEnd) {
  const size_t victim = GetParam();
  Event running;
  Event cancelled;
  FakeTaskSpec first = Sharing("t0");
  first.run = [&](int64_t) {
    running.Set();
    cancelled.Wait();
    return absl::OkStatus();
  };
  TaskId ids[] = {Submit(std::move(first), endings_[0]), Submit(Sharing("t1"), endings_[1])};
  blocker_.Release();
  running.Wait();
  harness_.scheduler->Cancel(ids[victim]);
  EXPECT_EQ(endings_[victim].finish_calls(), 0);  // what it lent is still in use
  cancelled.Set();
  EXPECT_EQ(endings_[victim].Wait(), Code::kCancelled);
  EXPECT_EQ(endings_[1 - victim].Wait(), Code::kOk);
}

INSTANTIATE_TEST_SUITE_P(LeaderAndSharer, CancelOneOfTwoTest, ::testing::Values(0, 1));

TEST_F(SchedulerShareTest, WhenAllAreCancelledTheRestIsNotComputed) {
  Event running;
  Event cancelled;
  FakeTaskSpec first = Sharing("t0");
  first.run = [&](int64_t item) {
    journal_.Write(absl::StrCat(item));
    running.Set();
    cancelled.Wait();
    return absl::OkStatus();
  };
  const TaskId a = Submit(std::move(first), endings_[0]);
  const TaskId b = Submit(Sharing("t1"), endings_[1]);
  blocker_.Release();
  running.Wait();
  harness_.scheduler->Cancel(a);
  harness_.scheduler->Cancel(b);
  cancelled.Set();
  EXPECT_EQ(endings_[0].Wait(), Code::kCancelled);
  EXPECT_EQ(endings_[1].Wait(), Code::kCancelled);
  EXPECT_THAT(journal_.lines(), ElementsAre("t0+1", "0"));
}

TEST_F(SchedulerShareTest, ADeadlineThatPassesDuringTheWorkIsTheSharersOwn) {
  FakeTaskSpec first = Sharing("t0");
  first.run = [this](int64_t item) {
    if (item == 1) harness_.clock.Advance(seconds(5));
    return absl::OkStatus();
  };
  FakeTaskSpec hasty = Sharing("t1");
  hasty.deadline = harness_.clock.Now() + seconds(3);
  Submit(std::move(first), endings_[0]);
  Submit(std::move(hasty), endings_[1]);
  blocker_.Release();
  EXPECT_EQ(endings_[0].Wait(), Code::kOk);
  EXPECT_EQ(endings_[1].Wait(), Code::kDeadlineExceeded);
}

TEST_F(SchedulerShareTest, StopEndsALeaderAndItsSharersOnce) {
  Event running;
  Event go_on;
  FakeTaskSpec first = Sharing("t0");
  first.run = [&](int64_t) {
    running.Set();
    go_on.Wait();
    return absl::OkStatus();
  };
  Submit(std::move(first), endings_[0]);
  Submit(Sharing("t1"), endings_[1]);
  Submit(Sharing("t2"), endings_[2]);
  blocker_.Release();
  running.Wait();
  std::thread stopper([this] { harness_.scheduler->Stop(); });
  Ending late;
  std::unique_ptr<Task> task = MakeFakeTask({}, late);
  while (harness_.scheduler->Submit(task).status().code() != Code::kUnavailable) task = MakeFakeTask({}, late);
  go_on.Set();
  stopper.join();
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(endings_[i].Wait(), Code::kUnavailable);
    EXPECT_EQ(endings_[i].finish_calls(), 1);
  }
}

TEST(SchedulerInlineTest, ASmallTaskRunsAllItsStagesHere) {
  Ending ending;
  Journal journal;
  SchedulerHarness harness({.threads = 1});
  const auto write = [&](int64_t item) {
    journal.Write(absl::StrCat(item));
    return absl::OkStatus();
  };
  EXPECT_EQ(harness.Submit(MakeFakeTask({.later_stages = {{}, {1, 1}}, .run = write}, ending)), TaskId{0});
  EXPECT_EQ(ending.finish_calls(), 1);
  EXPECT_THAT(journal.lines(), ElementsAre("0", "1", "2"));
}

}  // namespace
}  // namespace triad
