// In which order tasks run, and where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <deque>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/unit/batching/fake_task.h"

namespace triad {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Code = absl::StatusCode;
using std::chrono::seconds;

SchedulerOptions OneWorker() { return {.threads = 1, .max_inline_flop = 0}; }

// A spec that writes "<name><item>" into `journal` for every item it runs.
FakeTaskSpec Journaled(std::string name, std::vector<double> item_flop, Journal& journal) {
  return {.item_flop = std::move(item_flop), .run = [name = std::move(name), &journal](int64_t item) {
            journal.Write(absl::StrCat(name, item));
            return absl::OkStatus();
          }};
}

TEST(SchedulerOrderTest, AnIdleSchedulerStartsAtOnce) {
  Ending ending;
  SchedulerHarness harness(OneWorker());
  harness.Submit(MakeFakeTask({}, ending));
  EXPECT_EQ(ending.Wait(), Code::kOk);
  EXPECT_EQ(harness.observer.most_listed_tasks(), 1);
}

TEST(SchedulerOrderTest, ItemsOfOneTaskRunAtOnceOnAllWorkers) {
  constexpr int kThreads = 4;
  Ending ending;
  Event all_run;
  Mutex mu;
  int running = 0;
  SchedulerHarness harness({.threads = kThreads, .max_inline_flop = 0});
  harness.Submit(MakeFakeTask({.item_flop = std::vector<double>(kThreads, 1.0),
                               .run =
                                   [&](int64_t) {
                                     {
                                       MutexLock lock(mu);
                                       if (++running == kThreads) all_run.Set();
                                     }
                                     all_run.Wait();
                                     return absl::OkStatus();
                                   }},
                              ending));
  EXPECT_EQ(ending.Wait(), Code::kOk);
}

TEST(SchedulerOrderTest, LongestItemsGoFirstWithinATask) {
  Journal journal;
  Ending ending;
  SchedulerHarness harness(OneWorker());
  harness.Submit(MakeFakeTask(Journaled("t", {1, 3, 2, 3}, journal), ending));
  ending.Wait();
  EXPECT_THAT(journal.lines(), ElementsAre("t1", "t3", "t2", "t0"));
}

TEST(SchedulerOrderTest, SmallTasksPassAHugeOneAndLowOnesComeLast) {
  Journal journal;
  Blocker blocker;
  std::deque<Ending> endings(4);
  SchedulerHarness harness(OneWorker());
  harness.Submit(blocker.MakeTask());
  blocker.AwaitRunning();
  FakeTaskSpec low = Journaled("low", {1}, journal);
  low.priority = Priority::kLow;
  harness.Submit(MakeFakeTask(std::move(low), endings[0]));
  harness.Submit(MakeFakeTask(Journaled("huge", {1000, 1000, 1000}, journal), endings[1]));
  harness.Submit(MakeFakeTask(Journaled("a", {5}, journal), endings[2]));
  harness.Submit(MakeFakeTask(Journaled("b", {4}, journal), endings[3]));
  blocker.Release();
  for (Ending& ending : endings) EXPECT_EQ(ending.Wait(), Code::kOk);
  EXPECT_THAT(journal.lines(), ElementsAre("a0", "b0", "huge0", "huge1", "huge2", "low0"));
}

TEST(SchedulerOrderTest, ATaskThatArrivesBetweenTheItemsOfAHugeOneRunsNext) {
  Journal journal;
  Ending small;
  Blocker huge;
  SchedulerHarness harness(OneWorker());
  FakeTaskSpec spec = Journaled("huge", {1000, 1000, 1000}, journal);
  harness.Submit(huge.MakeTask(std::move(spec)));
  huge.AwaitRunning();
  harness.Submit(MakeFakeTask(Journaled("small", {1}, journal), small));
  huge.Release();
  huge.ending().Wait();
  EXPECT_THAT(journal.lines(), ElementsAre("huge0", "small0", "huge1", "huge2"));
}

TEST(SchedulerOrderTest, OneTaskLargerThanTheWholeBudgetRunsBesideTheOthers) {
  Blocker first;
  Blocker second;
  Ending small;
  SchedulerHarness harness({.threads = 2, .max_batch_tokens = 10, .max_inline_flop = 0});
  harness.Submit(first.MakeTask({.tokens = 1000}));
  first.AwaitRunning();
  harness.Submit(second.MakeTask({.tokens = 1000}));
  EXPECT_EQ(harness.scheduler->load().queued_tasks, 1) << "two at once would be twice the budget and more";
  harness.Submit(MakeFakeTask({.tokens = 10}, small));
  EXPECT_EQ(small.Wait(), Code::kOk);
  first.Release();
  second.AwaitRunning();
  second.Release();
  EXPECT_EQ(second.ending().Wait(), Code::kOk);
}

TEST(SchedulerOrderTest, ABatchGrowsUpToItsBudgetWhateverTheShapesInIt) {
  Blocker blocker;
  std::deque<Ending> endings(20);
  SchedulerHarness harness({.threads = 1, .max_batch_tokens = 100, .max_inline_flop = 0});
  harness.Submit(blocker.MakeTask({.tokens = 10}));
  blocker.AwaitRunning();
  for (size_t i = 0; i < endings.size(); ++i) {  // shapes alternate; each costs 10 tokens
    const std::vector<double> item_flop = i % 2 == 0 ? std::vector<double>{6} : std::vector<double>{1, 2, 3};
    harness.Submit(MakeFakeTask({.tokens = 10, .item_flop = item_flop}, endings[i]));
  }
  EXPECT_EQ(harness.scheduler->load().listed_tasks, 10);
  EXPECT_EQ(harness.scheduler->load().queued_tasks, 11);
  blocker.Release();
  for (Ending& ending : endings) EXPECT_EQ(ending.Wait(), Code::kOk);
  EXPECT_EQ(harness.observer.most_listed_tasks(), 10);
  EXPECT_EQ(harness.observer.most_listed_tokens(), 100);
}

TEST(SchedulerInlineTest, ASmallTaskRunsOnItsSubmitterWhenNothingIsInFlight) {
  Ending ending;
  std::thread::id ran_on;
  SchedulerHarness harness({.threads = 1, .max_inline_flop = 10});
  auto task = MakeFakeTask({.item_flop = {4, 6},
                            .run =
                                [&ran_on](int64_t) {
                                  ran_on = std::this_thread::get_id();
                                  return absl::OkStatus();
                                }},
                           ending);
  absl::StatusOr<TaskId> id = harness.scheduler->Submit(task);
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(*id, 0u);
  EXPECT_EQ(ending.finish_calls(), 1);
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_EQ(harness.scheduler->load().in_flight_bytes, 0);
}

TEST(SchedulerInlineTest, ALargeTaskAndOneThatAWorkerIsFreeForGoToThePool) {
  Ending large;
  Ending beside;
  Blocker blocker;
  SchedulerHarness harness({.threads = 2, .max_inline_flop = 10});
  EXPECT_NE(harness.Submit(MakeFakeTask({.item_flop = {6, 6}}, large)), 0u);
  EXPECT_EQ(large.Wait(), Code::kOk);
  harness.Submit(blocker.MakeTask({.item_flop = {20}}));
  EXPECT_NE(harness.Submit(MakeFakeTask({.item_flop = {1}}, beside)), 0u);
  EXPECT_EQ(beside.Wait(), Code::kOk);
  blocker.Release();
}

TEST(SchedulerInlineTest, SmallTasksWaitForNoneWhenAllWorkersAreBusy) {
  const int share_key = 0;
  Blocker first;
  Blocker waiting;
  Ending low;
  Ending shared;
  Blocker here;
  Ending beside;
  SchedulerHarness harness({.threads = 1, .max_inline_flop = 10});
  harness.Submit(first.MakeTask({.item_flop = {20}}));
  first.AwaitRunning();
  harness.Submit(waiting.MakeTask({.item_flop = {20}}));
  EXPECT_NE(harness.Submit(MakeFakeTask({.priority = Priority::kLow}, low)), 0u);
  EXPECT_NE(harness.Submit(MakeFakeTask({.share_key = &share_key}, shared)), 0u);
  // Two at once, each with scratch of its own.
  std::thread submitter([&] { EXPECT_EQ(harness.Submit(here.MakeTask()), 0u); });
  here.AwaitRunning();
  EXPECT_EQ(harness.Submit(MakeFakeTask({}, beside)), 0u);
  EXPECT_EQ(beside.finish_calls(), 1);
  here.Release();
  submitter.join();
  EXPECT_EQ(low.finish_calls() + shared.finish_calls() + waiting.ending().finish_calls(), 0);
  first.Release();
  waiting.Release();
  for (Ending* ending : {&low, &shared, &first.ending(), &waiting.ending()}) EXPECT_EQ(ending->Wait(), Code::kOk);
}

TEST(SchedulerInlineTest, ASmallTaskIsNotRefusedForWhatItDoesNotWaitFor) {
  Ending paced;
  Blocker running;
  Ending waiting;
  Ending large;
  Ending small;
  SchedulerHarness harness({.threads = 1, .max_inline_flop = 10});
  const auto take_a_second = [&harness](int64_t) {
    harness.clock.Advance(seconds(1));
    return absl::OkStatus();
  };
  harness.Submit(MakeFakeTask({.item_flop = {20}, .run = take_a_second}, paced));
  EXPECT_EQ(paced.Wait(), Code::kOk);
  EXPECT_TRUE(harness.scheduler->WaitIdle(kNever));
  harness.Submit(running.MakeTask({.item_flop = {20}}));
  running.AwaitRunning();
  harness.Submit(MakeFakeTask({.item_flop = {20}}, waiting));  // 1 s, and headroom
  const Time deadline = harness.clock.Now() + seconds(1);
  std::unique_ptr<Task> task = MakeFakeTask({.deadline = deadline, .item_flop = {20}}, large);
  EXPECT_EQ(harness.scheduler->Submit(task).status().code(), Code::kResourceExhausted);
  EXPECT_EQ(harness.Submit(MakeFakeTask({.deadline = deadline, .item_flop = {1}}, small)), 0u);
  EXPECT_EQ(small.Wait(), Code::kOk);
  running.Release();
}

TEST(SchedulerWorkerTest, ComputesAsNiceAsAskedAndItsSubmitterDoesNot) {
  const int mine = getpriority(PRIO_PROCESS, 0);
  const auto run_niceness = [](SchedulerHarness& harness) {
    Ending ending;
    int found = 0;
    harness.Submit(MakeFakeTask({.run =
                                     [&found](int64_t) {
                                       found = getpriority(PRIO_PROCESS, 0);
                                       return absl::OkStatus();
                                     }},
                                ending));
    EXPECT_EQ(ending.Wait(), Code::kOk);
    return found;
  };
  SchedulerHarness asked({.threads = 1, .niceness = 3, .max_inline_flop = 0});
  EXPECT_EQ(run_niceness(asked), std::min(mine + 3, 19));
  SchedulerHarness inline_only({.threads = 1, .niceness = 3, .max_inline_flop = 10});
  EXPECT_EQ(run_niceness(inline_only), mine);
}

TEST(SchedulerInlineTest, WhatWritesMuchOrIsSlowForItsFlopGoesToThePool) {
  Ending wide;
  Ending slow;
  SchedulerHarness harness({.threads = 1, .max_inline_flop = 10, .max_inline_bytes = 100});
  EXPECT_NE(harness.Submit(MakeFakeTask({.bytes = 101, .item_flop = {0}}, wide)), 0u);
  EXPECT_EQ(wide.Wait(), Code::kOk);
  EXPECT_TRUE(harness.scheduler->WaitIdle(kNever));
  EXPECT_NE(harness.Submit(MakeFakeTask({.may_run_inline = false}, slow)), 0u);
  EXPECT_EQ(slow.Wait(), Code::kOk);
}

TEST(SchedulerInlineTest, TheSecondOfTwoSubmittersDoesNotRunInline) {
  Blocker first;
  Ending second;
  SchedulerHarness harness({.threads = 1, .max_inline_flop = 10});
  std::thread submitter([&] { harness.Submit(first.MakeTask()); });
  first.AwaitRunning();
  EXPECT_NE(harness.Submit(MakeFakeTask({}, second)), 0u);
  EXPECT_EQ(second.Wait(), Code::kOk);
  first.Release();
  submitter.join();
}

TEST(SchedulerInlineTest, StopsAtItsDeadlineAndAtAFailedItem) {
  Ending late;
  Ending failed;
  Journal journal;
  SchedulerHarness harness({.threads = 1, .max_inline_flop = 10});
  FakeTaskSpec spec = Journaled("late", {1, 1}, journal);
  spec.deadline = harness.clock.Now() + seconds(1);
  spec.run = [&harness, run = spec.run](int64_t item) {
    harness.clock.Advance(seconds(1));
    return run(item);
  };
  harness.Submit(MakeFakeTask(std::move(spec), late));
  EXPECT_EQ(late.Wait(), Code::kDeadlineExceeded);
  EXPECT_THAT(journal.lines(), ElementsAre("late0"));
  EXPECT_THAT(harness.observer.refusals(), ElementsAre(Refusal::kDeadline));
  harness.Submit(
      MakeFakeTask({.item_flop = {1, 1}, .run = [](int64_t) { return absl::DataLossError("bad"); }}, failed));
  EXPECT_EQ(failed.Wait(), Code::kDataLoss);
}

TEST(SchedulerInlineTest, ATaskWithoutItemsEndsAtOnceThoughAllWorkersAreBusy) {
  Blocker blocker;
  Ending empty;
  SchedulerHarness harness(OneWorker());
  harness.Submit(blocker.MakeTask());
  blocker.AwaitRunning();
  EXPECT_EQ(harness.Submit(MakeFakeTask({.item_flop = {}}, empty)), 0u);
  EXPECT_EQ(empty.finish_calls(), 1);
  EXPECT_EQ(empty.Wait(), Code::kOk);
  EXPECT_EQ(empty.times().started, empty.times().finished);
  blocker.Release();
}

TEST(SchedulerThreadsTest, HaveNames) {
  Ending ending;
  std::string name;
  SchedulerHarness harness(OneWorker());
  harness.Submit(MakeFakeTask({.run =
                                   [&name](int64_t) {
                                     char buffer[16] = {};
                                     pthread_getname_np(pthread_self(), buffer, sizeof(buffer));
                                     name = buffer;
                                     return absl::OkStatus();
                                   }},
                              ending));
  ending.Wait();
  EXPECT_EQ(name, "triad-compute-0");
}

TEST(SchedulerTimesTest, SayWhenATaskWasAcceptedStartedAndFinished) {
  Blocker blocker;
  Ending ending;
  SchedulerHarness harness(OneWorker());
  harness.Submit(blocker.MakeTask());
  blocker.AwaitRunning();
  const Time accepted = harness.clock.Now();
  FakeTaskSpec spec{.item_flop = {1, 1}};
  spec.run = [&harness](int64_t) {
    harness.clock.Advance(seconds(3));
    return absl::OkStatus();
  };
  harness.Submit(MakeFakeTask(std::move(spec), ending));
  harness.clock.Advance(seconds(2));
  blocker.Release();
  ending.Wait();
  EXPECT_EQ(ending.times().accepted, accepted);
  EXPECT_EQ(ending.times().started, accepted + seconds(2));
  EXPECT_EQ(ending.times().finished, accepted + seconds(8));
  EXPECT_THAT(harness.observer.refusals(), IsEmpty());
}

}  // namespace
}  // namespace triad
