#include "core/batching/admission_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace triad {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Time kNow = Time(seconds(1000));

SchedulerOptions Bounds() {
  return {.max_in_flight_bytes = 100, .max_in_flight_requests = 3, .max_queue_time = seconds(10)};
}

TEST(AdmitTest, RefusesWithTheReasonThatApplies) {
  struct Case {
    const char* name;
    InFlight in_flight;
    bool is_draining;
    int64_t bytes;
    Time deadline;
    Code code;
    std::optional<Refusal> refusal;
  };
  const Case cases[] = {
      {"idle", {}, false, 100, kNever, Code::kOk, std::nullopt},
      {"just fits", {.tasks = 2, .bytes = 60}, false, 40, kNow + Duration(1), Code::kOk, std::nullopt},
      {"bytes", {.tasks = 2, .bytes = 60}, false, 41, kNever, Code::kResourceExhausted, Refusal::kBytes},
      {"tasks", {.tasks = 3, .bytes = 0}, false, 0, kNever, Code::kResourceExhausted, Refusal::kTasks},
      {"deadline", {}, false, 1, kNow, Code::kDeadlineExceeded, Refusal::kDeadline},
      {"draining", {}, true, 1, kNever, Code::kUnavailable, Refusal::kDraining},
      {"too large by itself", {}, false, 101, kNever, Code::kInvalidArgument, std::nullopt},
      {"absurdly large",
       {.tasks = 1, .bytes = 60},
       false,
       std::numeric_limits<int64_t>::max(),
       kNever,
       Code::kInvalidArgument,
       std::nullopt},
  };
  for (const Case& c : cases) {
    const AdmissionDecision decision = Admit(c.in_flight, c.is_draining, c.bytes, c.deadline, kNow, Bounds());
    EXPECT_EQ(decision.status.code(), c.code) << c.name << ": " << decision.status;
    EXPECT_EQ(decision.refusal, c.refusal) << c.name;
  }
}

TEST(AdmitTest, NamesTheBoundAndTheValue) {
  const AdmissionDecision decision = Admit({.tasks = 2, .bytes = 60}, false, 41, kNever, kNow, Bounds());
  EXPECT_THAT(std::string(decision.status.message()), HasSubstr("60 bytes in flight and 41 more"));
  EXPECT_THAT(std::string(decision.status.message()), HasSubstr("max_in_flight_bytes is 100"));
}

TEST(AdmitInTimeTest, RefusesOnlyWhatWouldBeLateByTheEstimate) {
  struct Case {
    const char* name;
    FinishEstimate estimate;
    Duration left;
    Code code;
  };
  const Case cases[] = {
      {"nothing is known", {}, milliseconds(1), Code::kOk},
      {"no deadline", {seconds(1'000'000'000), seconds(1'000'000'000)}, kNever - kNow, Code::kOk},
      {"just in time", {milliseconds(130), milliseconds(180)}, milliseconds(320), Code::kOk},
      {"behind others", {milliseconds(130), milliseconds(181)}, milliseconds(320), Code::kResourceExhausted},
      {"just in time alone", {milliseconds(100), Duration(0)}, milliseconds(100), Code::kOk},
      {"late in any case", {milliseconds(101), Duration(0)}, milliseconds(100), Code::kDeadlineExceeded},
      {"late in any case, and behind others",
       {milliseconds(101), seconds(9)},
       milliseconds(100),
       Code::kDeadlineExceeded},
  };
  for (const Case& c : cases) {
    const AdmissionDecision decision = AdmitInTime(c.estimate, c.left);
    EXPECT_EQ(decision.status.code(), c.code) << c.name << ": " << decision.status;
    EXPECT_EQ(decision.refusal.has_value(), c.code != Code::kOk) << c.name;
    EXPECT_EQ(decision.refusal.value_or(Refusal::kWouldBeLate), Refusal::kWouldBeLate) << c.name;
  }
}

TEST(AdmitInTimeTest, NamesBothTimesAndTheWayOut) {
  const absl::Status load = AdmitInTime({milliseconds(40), milliseconds(300)}, milliseconds(100)).status;
  EXPECT_EQ(
      load.message(),
      "would be answered in about 343 ms, and 100 ms are left until the deadline: come back later, or allow more time");
  const absl::Status alone = AdmitInTime({milliseconds(140), milliseconds(300)}, milliseconds(100)).status;
  EXPECT_EQ(alone.message(),
            "an idle server would need at least 140 ms, and 100 ms are left until the deadline: ask for less, or allow "
            "more time");
}

TEST(NextLookTest, IsTheDeadlineOrTheEndOfTheQueueTime) {
  SchedulerOptions options = Bounds();
  EXPECT_EQ(NextLook(kNow, kNever, /*is_queued=*/true, options), kNow + seconds(10));
  EXPECT_EQ(NextLook(kNow, kNow + seconds(3), /*is_queued=*/true, options), kNow + seconds(3));
  EXPECT_EQ(NextLook(kNow, kNow + seconds(30), /*is_queued=*/true, options), kNow + seconds(10));
  EXPECT_EQ(NextLook(kNow, kNow + seconds(30), /*is_queued=*/false, options), kNow + seconds(30));
  EXPECT_EQ(NextLook(kNow, kNever, /*is_queued=*/false, options), kNever);
  options.max_queue_time = Duration::max();
  EXPECT_EQ(NextLook(kNow, kNever, /*is_queued=*/true, options), kNever);
}

TEST(EarlyEndTest, HasACodeForEveryReasonThatMayComeUpAfterAdmission) {
  EXPECT_EQ(ExpiryReason(kNow, kNow), Refusal::kDeadline);
  EXPECT_EQ(ExpiryReason(kNow + Duration(1), kNow), Refusal::kQueueTime);
  EXPECT_EQ(EarlyEnd(Refusal::kDeadline, Bounds()).code(), Code::kDeadlineExceeded);
  EXPECT_EQ(EarlyEnd(Refusal::kCancelled, Bounds()).code(), Code::kCancelled);
  EXPECT_EQ(EarlyEnd(Refusal::kDraining, Bounds()).code(), Code::kUnavailable);
  const absl::Status queue_time = EarlyEnd(Refusal::kQueueTime, Bounds());
  EXPECT_EQ(queue_time.code(), Code::kResourceExhausted);
  EXPECT_THAT(std::string(queue_time.message()), HasSubstr("max_queue_time (10000 ms)"));
}

TEST(EarlyEndDeathTest, KnowsNoReasonNotToLetIn) {
  for (const Refusal reason : {Refusal::kBytes, Refusal::kTasks, Refusal::kWouldBeLate, Refusal::kPeer}) {
    EXPECT_DEATH((void)EarlyEnd(reason, Bounds()), "a reason not to let it in");
  }
}

TEST(RunsHereTest, SmallWorkOfAnIdleServerOrBesideThreadsThatAreAllBusy) {
  const SchedulerOptions options = {.threads = 2, .max_inline_flop = 10, .max_inline_bytes = 100};
  const TaskCost small = {.tokens = 1, .bytes = 100, .flop = 10};
  ScheduledTask normal;
  normal.items = {{.item = 0, .flop = 10}};
  ScheduledTask low = normal;
  low.priority = Priority::kLow;
  ScheduledTask shared = normal;
  shared.share_key = &options;
  const ScheduledTask empty;
  struct Case {
    const char* name;
    const ScheduledTask& task;
    TaskCost cost;
    PoolLoad pool;
    bool runs_here;
  };
  const PoolLoad idle;
  const PoolLoad busy = {.tasks = 5, .busy_threads = 2};
  const Case cases[] = {
      {"nothing to do", empty, small, {.tasks = 5, .busy_threads = 1}, true},
      {"idle", normal, small, idle, true},
      {"idle, low", low, small, idle, true},
      {"idle, shared", shared, small, idle, true},
      {"idle, much to do", normal, {.bytes = 100, .flop = 10.5}, idle, false},
      {"idle, many bytes", normal, {.bytes = 101, .flop = 10}, idle, false},
      {"idle, slow", normal, {.bytes = 100, .flop = 10, .may_run_inline = false}, idle, false},
      {"a thread is free", normal, small, {.tasks = 5, .busy_threads = 1}, false},
      {"another runs on its submitter", normal, small, {.tasks = 1, .busy_threads = 0}, false},
      {"all busy", normal, small, busy, true},
      {"all busy, low", low, small, busy, false},
      {"all busy, shared", shared, small, busy, false},
      {"all busy, much to do", normal, {.bytes = 100, .flop = 10.5}, busy, false},
      {"all busy, many bytes", normal, {.bytes = 101, .flop = 10}, busy, false},
      {"all busy, slow", normal, {.bytes = 100, .flop = 10, .may_run_inline = false}, busy, false},
  };
  for (const Case& c : cases) EXPECT_EQ(RunsHere(c.task, c.cost, c.pool, options), c.runs_here) << c.name;
}

TEST(ValidateTest, NamesTheOptionThatIsOutOfRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<SchedulerOptions, const char*> cases[] = {
      {{.threads = 0}, "threads must be >= 1; was 0"},
      {{.niceness = -1}, "niceness must lie between 0 and 19; was -1"},
      {{.niceness = 20}, "niceness must lie between 0 and 19; was 20"},
      {{.max_in_flight_bytes = 0}, "max_in_flight_bytes"},
      {{.max_in_flight_requests = -1}, "max_in_flight_requests"},
      {{.max_queue_time = Duration(0)}, "max_queue_time"},
      {{.max_batch_tokens = 0}, "max_batch_tokens"},
      {{.max_batch_flop = nan}, "max_batch_flop"},
      {{.max_inline_flop = -1}, "max_inline_flop"},
  };
  EXPECT_TRUE(Validate({}).ok());
  for (const auto& [options, text] : cases) {
    const absl::Status status = Validate(options);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }
}

}  // namespace
}  // namespace triad
