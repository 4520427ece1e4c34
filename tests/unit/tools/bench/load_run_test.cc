#include "client/tools/bench/load_run.h"

#include <algorithm>
#include <functional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/mutex.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temp_path.h"

namespace triad::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Keeps what is sent until the test answers it, from its own thread.
class FakeSender final : public RequestSender {
 public:
  absl::Status Send(const PlannedRequest& request, ReplyCallback done) override {
    MutexLock lock(mu_);
    if (!refusal_.ok()) return refusal_;
    requests_.push_back(request);
    waiting_.push_back(std::move(done));
    most_waiting_ = std::max(most_waiting_, waiting_.size());
    changed_.SignalAll();
    return absl::OkStatus();
  }

  // Waits until so many have been sent in all.
  void AwaitSent(size_t count) {
    MutexLock lock(mu_);
    while (requests_.size() < count) changed_.Wait(mu_);
  }
  // Answers the oldest.
  void Answer(absl::Status status = absl::OkStatus()) {
    ReplyCallback done;
    {
      MutexLock lock(mu_);
      done = std::move(waiting_.front());
      waiting_.erase(waiting_.begin());
    }
    done({.status = std::move(status)});
  }
  void Refuse(absl::Status status) {
    MutexLock lock(mu_);
    refusal_ = std::move(status);
  }
  std::vector<PlannedRequest> requests() {
    MutexLock lock(mu_);
    return requests_;
  }
  size_t most_waiting() {
    MutexLock lock(mu_);
    return most_waiting_;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  absl::Status refusal_ ABSL_GUARDED_BY(mu_);
  std::vector<PlannedRequest> requests_ ABSL_GUARDED_BY(mu_);
  std::vector<ReplyCallback> waiting_ ABSL_GUARDED_BY(mu_);
  size_t most_waiting_ ABSL_GUARDED_BY(mu_) = 0;
};

class LoadRunTest : public ::testing::Test {
 protected:
  // Runs `plan` on a thread of its own.
  void Start(LoadPlan plan, TraceWriter* trace = nullptr) {
    tools_.trace = trace;
    thread_ = std::thread([this, moved = std::move(plan)]() mutable { end_ = RunLoad(std::move(moved), tools_); });
  }
  RunResult Join() {
    thread_.join();
    return recorder_.Result();
  }
  static LoadPlan Closed(int64_t concurrency) {
    return {.requests = DrawRequests({.seed = 1}), .concurrency = concurrency};
  }
  // Due every 10 ms, `count` times.
  static LoadPlan Open(int64_t count) {
    return {.requests = DrawRequests({.seed = 1}),
            .due_times = [count, next = int64_t{0}]() mutable -> std::optional<Duration> {
              if (next == count) return std::nullopt;
              return milliseconds(10) * next++;
            }};
  }

  FakeClock clock_;
  FakeSender sender_;
  RunRecorder recorder_{{}, clock_.Now()};
  AnswerSample sample_{/*size=*/4, /*seed=*/1};
  LoadTools tools_ = {.routes = {{.sender = &sender_}}, .recorder = recorder_, .sample = sample_, .clock = clock_};
  RunEnd end_ = RunEnd::kComplete;  // once joined
  std::thread thread_;
};

TEST_F(LoadRunTest, AClosedLoopKeepsItsConcurrencyInFlight) {
  LoadPlan plan = Closed(/*concurrency=*/3);
  plan.max_requests = 10;
  Start(std::move(plan));
  for (size_t sent = 3; sent <= 10; ++sent) {
    sender_.AwaitSent(sent);
    clock_.Advance(milliseconds(1));
    sender_.Answer();
  }
  for (int i = 0; i < 2; ++i) sender_.Answer();
  const RunResult result = Join();
  EXPECT_EQ(result.succeeded(), 10);
  EXPECT_EQ(result.sent, 10);
  EXPECT_EQ(sender_.most_waiting(), 3u);
}

TEST_F(LoadRunTest, AClosedLoopEndsWithItsDurationAndCountsWhatWasInFlight) {
  LoadPlan plan = Closed(/*concurrency=*/2);
  plan.duration = seconds(1);
  Start(std::move(plan));
  sender_.AwaitSent(2);
  clock_.Advance(milliseconds(999));
  sender_.Answer();
  sender_.AwaitSent(3);
  clock_.Advance(milliseconds(1));
  sender_.Answer();
  sender_.Answer();
  const RunResult result = Join();
  EXPECT_EQ(result.succeeded(), 3);
  EXPECT_EQ(result.elapsed, Duration(seconds(1)));
  EXPECT_EQ(result.latency.max(), Duration(seconds(1)));
}

TEST_F(LoadRunTest, ErrorsAreCountedAndTheLaneGoesOn) {
  LoadPlan plan = Closed(/*concurrency=*/1);
  plan.max_requests = 2;
  Start(std::move(plan));
  sender_.AwaitSent(1);
  sender_.Answer(absl::UnavailableError("gone"));
  sender_.AwaitSent(2);
  sender_.Answer();
  const RunResult result = Join();
  EXPECT_EQ(result.succeeded(), 1);
  EXPECT_EQ(result.codes[static_cast<size_t>(absl::StatusCode::kUnavailable)].first_message, "gone");
}

TEST_F(LoadRunTest, AStopEndsAClosedLoopOnceWhatIsInFlightIsAnswered) {
  std::stop_source stop;
  LoadPlan plan = Closed(/*concurrency=*/2);
  plan.duration = seconds(10);
  plan.stop = stop.get_token();
  Start(std::move(plan));
  sender_.AwaitSent(2);
  clock_.Advance(milliseconds(5));
  stop.request_stop();
  sender_.Answer();
  sender_.Answer();
  const RunResult result = Join();
  EXPECT_EQ(end_, RunEnd::kInterrupted);
  EXPECT_EQ(result.sent, 2);
  EXPECT_EQ(result.succeeded(), 2);
  EXPECT_EQ(result.elapsed, Duration(milliseconds(5)));
}

TEST_F(LoadRunTest, AStopEndsAnOpenLoopThatWaitsForTheNextDueTime) {
  std::stop_source stop;
  LoadPlan plan = Open(/*count=*/3);
  plan.duration = milliseconds(30);
  plan.stop = stop.get_token();
  Start(std::move(plan));
  sender_.AwaitSent(1);
  stop.request_stop();  // the clock stands still: nothing else would end the wait
  sender_.Answer();
  const RunResult result = Join();
  EXPECT_EQ(end_, RunEnd::kInterrupted);
  EXPECT_EQ(result.due(), 1);
  EXPECT_EQ(result.elapsed, Duration(0));
}

TEST_F(LoadRunTest, AClosedLoopEndsOnceAllIsRefusedForGood) {
  LoadPlan plan = Closed(/*concurrency=*/1);
  plan.duration = std::chrono::hours(1);
  Start(std::move(plan));
  for (size_t sent = 1; sent <= 10; ++sent) {
    sender_.AwaitSent(sent);
    clock_.Advance(milliseconds(100));
    sender_.Answer(absl::InvalidArgumentError("too long"));
  }
  const RunResult result = Join();
  EXPECT_EQ(end_, RunEnd::kRefused);
  EXPECT_EQ(result.sent, 10);
  EXPECT_EQ(result.elapsed, Duration(seconds(1)));
}

TEST_F(LoadRunTest, AnOpenLoopThatWaitsForTheNextDueTimeEndsOnceAllIsRefusedForGood) {
  LoadPlan plan = Open(/*count=*/200);
  Start(std::move(plan));
  clock_.Advance(seconds(1));
  sender_.AwaitSent(101);  // the next is due when the clock goes on
  for (int i = 0; i < 101; ++i) sender_.Answer(absl::InvalidArgumentError("too long"));
  const RunResult result = Join();
  EXPECT_EQ(end_, RunEnd::kRefused);
  EXPECT_EQ(result.sent, 101);
}

TEST_F(LoadRunTest, LanesOfABrokenSenderEnd) {
  sender_.Refuse(absl::UnavailableError("the stream has ended"));
  Start(Closed(/*concurrency=*/3));
  const RunResult result = Join();
  EXPECT_EQ(result.codes[static_cast<size_t>(absl::StatusCode::kUnavailable)].count, 3);
}

TEST_F(LoadRunTest, AnOpenLoopSendsWhenDueWhateverIsUnanswered) {
  Start(Open(/*count=*/3));
  sender_.AwaitSent(1);
  clock_.Advance(milliseconds(10));
  sender_.AwaitSent(2);
  clock_.Advance(milliseconds(10));
  sender_.AwaitSent(3);
  for (int i = 0; i < 3; ++i) sender_.Answer();
  const RunResult result = Join();
  EXPECT_EQ(result.latency.max(), Duration(milliseconds(20)));
  EXPECT_EQ(result.latency.min(), Duration(milliseconds(0)));
  EXPECT_EQ(result.late, 0);
}

TEST_F(LoadRunTest, ALateSendIsMeasuredFromWhenItWasDue) {
  clock_.Advance(milliseconds(25));  // the generator slept through all three
  Start(Open(/*count=*/3));
  sender_.AwaitSent(3);
  for (int i = 0; i < 3; ++i) sender_.Answer();
  const RunResult result = Join();
  EXPECT_EQ(result.late, 2) << "25 and 15 ms; 5 ms is in time";
  EXPECT_EQ(result.latency.max(), Duration(milliseconds(25)));
  EXPECT_EQ(result.uncorrected.max(), Duration(milliseconds(0)));
}

TEST_F(LoadRunTest, AnOpenLoopDropsWhatWouldBeTooMuchInFlight) {
  LoadPlan plan = Open(/*count=*/4);
  plan.max_in_flight = 2;
  plan.duration = milliseconds(40);
  clock_.Advance(milliseconds(30));
  Start(std::move(plan));
  sender_.AwaitSent(2);
  // Once all were due, the run waits for the two that were sent.
  while (recorder_.Result().dropped < 2) std::this_thread::yield();
  sender_.Answer();
  sender_.Answer();
  const RunResult result = Join();
  EXPECT_EQ(result.sent, 2);
  EXPECT_EQ(result.dropped, 2);
  EXPECT_EQ(result.due(), 4);
  EXPECT_EQ(result.elapsed, Duration(milliseconds(40)));
}

TEST_F(LoadRunTest, RoutesTakeTurns) {
  FakeSender other;
  tools_.routes.push_back({.sender = &other, .target = 1});
  clock_.Advance(seconds(1));
  Start(Open(/*count=*/4));
  sender_.AwaitSent(2);
  other.AwaitSent(2);
  for (int i = 0; i < 2; ++i) {
    sender_.Answer();
    other.Answer();
  }
  EXPECT_EQ(Join().succeeded(), 4);
  std::multiset<size_t> targets;
  for (const SampledAnswer& answer : sample_.Take()) targets.insert(answer.target);
  EXPECT_EQ(targets, (std::multiset<size_t>{0, 0, 1, 1}));
}

TEST_F(LoadRunTest, ATraceHoldsWhatWasDueAndWhen) {
  const std::string path = TempPath("run.trace");
  auto trace = TraceWriter::Create(path, {});
  ASSERT_TRUE(trace.ok());
  clock_.Advance(seconds(1));
  Start(Open(/*count=*/3), trace->get());
  sender_.AwaitSent(3);
  for (int i = 0; i < 3; ++i) sender_.Answer();
  Join();
  ASSERT_EQ((*trace)->Close(), absl::OkStatus());
  const auto read = ReadTrace(path);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->entries.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read->entries[i].due, Duration(milliseconds(10) * i));
    EXPECT_EQ(read->entries[i].request, sender_.requests()[i]);
  }
}

TEST(AnswerSampleTest, EveryAnswerHasTheSameChance) {
  constexpr int kAnswers = 20;
  constexpr int kRounds = 2000;
  std::vector<int> kept(kAnswers);
  for (int round = 0; round < kRounds; ++round) {
    AnswerSample sample(/*size=*/5, /*seed=*/static_cast<uint64_t>(round));
    for (int i = 0; i < kAnswers; ++i) sample.Offer({.layer_version = i});
    const auto answers = sample.Take();
    ASSERT_EQ(answers.size(), 5u);
    for (const SampledAnswer& answer : answers) ++kept[static_cast<size_t>(answer.layer_version)];
  }
  for (int i = 0; i < kAnswers; ++i) EXPECT_NEAR(kept[static_cast<size_t>(i)], kRounds / 4, 80) << i;  // 4 deviations
}

}  // namespace
}  // namespace triad::tools
