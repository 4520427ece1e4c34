#include "client/tools/bench/run_recorder.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace triad::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

const Time kStart = Time(std::chrono::hours(1));

Time At(int64_t ms) { return kStart + milliseconds(ms); }

TEST(RunRecorderTest, LatencyCountsFromDueAndTheOtherFromSent) {
  RunRecorder recorder({}, kStart);
  recorder.OnSent(At(10), At(40));
  recorder.OnResult({.due = At(10), .sent = At(40), .answered = At(50)}, {});
  const RunResult result = recorder.Result();
  EXPECT_EQ(result.latency.max(), Duration(milliseconds(40)));
  EXPECT_EQ(result.uncorrected.max(), Duration(milliseconds(10)));
  EXPECT_EQ(result.send_delay.max(), Duration(milliseconds(30)));
}

TEST(RunRecorderTest, TheServersTimeIsSplitAndTheWireIsTheRest) {
  RunRecorder recorder({}, kStart);
  recorder.OnResult(
      {.due = At(0), .sent = At(0), .answered = At(20)},
      {.queue = absl::Milliseconds(2), .compute = absl::Milliseconds(7), .total = absl::Milliseconds(12)});
  const RunResult result = recorder.Result();
  EXPECT_EQ(result.queue.max(), Duration(milliseconds(2)));
  EXPECT_EQ(result.compute.max(), Duration(milliseconds(7)));
  EXPECT_EQ(result.rest.max(), Duration(milliseconds(3)));
  EXPECT_EQ(result.wire.max(), Duration(milliseconds(8)));
}

TEST(RunRecorderTest, ErrorsCountByCodeAndKeepTheirFirstMessage) {
  RunRecorder recorder({}, kStart);
  const RequestTimes times = {.due = At(0), .sent = At(0), .answered = At(1)};
  recorder.OnError(times, absl::ResourceExhaustedError("first"));
  recorder.OnError(times, absl::ResourceExhaustedError("second"));
  recorder.OnError(times, absl::UnavailableError("gone"));
  recorder.OnResult(times, {});
  const RunResult result = recorder.Result();
  const CodeCount& exhausted = result.codes[static_cast<size_t>(absl::StatusCode::kResourceExhausted)];
  EXPECT_EQ(exhausted.count, 2);
  EXPECT_EQ(exhausted.first_message, "first");
  EXPECT_EQ(result.answered(), 4);
  EXPECT_EQ(result.succeeded(), 1);
  EXPECT_EQ(result.latency.count(), 1) << "errors have no latency";
}

TEST(RunRecorderTest, GoodputCountsResultsWithinTheObjective) {
  RunRecorder recorder({.slo = ServiceLevel{.share = 0.9, .limit = milliseconds(20)}}, kStart);
  recorder.OnResult({.due = At(0), .sent = At(15), .answered = At(20)}, {});
  recorder.OnResult({.due = At(0), .sent = At(15), .answered = At(21)}, {});
  recorder.OnSendingEnded(At(500));
  const RunResult result = recorder.Result();
  EXPECT_EQ(result.within_slo, 1);
  EXPECT_DOUBLE_EQ(result.throughput(), 4);
  EXPECT_DOUBLE_EQ(result.goodput(), 2);
}

TEST(RunRecorderTest, ElapsedEndsWithTheLastResultButNotWithAStraggler) {
  RunRecorder recorder({}, kStart);
  recorder.OnSendingEnded(At(1000));
  recorder.OnResult({.due = At(900), .sent = At(900), .answered = At(1200)}, {});
  recorder.OnError({.due = At(900), .sent = At(900), .answered = At(30'000)}, absl::DeadlineExceededError(""));
  EXPECT_EQ(recorder.Result().elapsed, Duration(milliseconds(1200)));
}

TEST(RunRecorderTest, SummaryIsALine) {
  RunRecorder recorder({}, kStart);
  recorder.OnResult({.due = At(0), .sent = At(0), .answered = At(3)}, {});
  recorder.OnDropped(At(1));
  EXPECT_EQ(recorder.Summary(At(500)), "2/s  p50 3.00ms  p99 3.00ms  errors 1");
}

TEST(CheckGeneratorTest, OneSendInAHundredMayBeLate) {
  const RecorderOptions options = {.late_after = milliseconds(10)};
  RunRecorder recorder(options, kStart);
  for (int i = 0; i < 99; ++i) recorder.OnSent(At(i), At(i + 10));
  recorder.OnSent(At(100), At(111));
  EXPECT_EQ(CheckGenerator(recorder.Result(), options), absl::OkStatus());
  recorder.OnSent(At(100), At(111));
  EXPECT_THAT(std::string(CheckGenerator(recorder.Result(), options).message()),
              HasSubstr("2 of 101 requests were sent more than 10.0ms late"));
}

TEST(CheckGeneratorTest, ADroppedRequestFails) {
  RunRecorder recorder({}, kStart);
  for (int i = 0; i < 999; ++i) recorder.OnSent(At(i), At(i));
  recorder.OnDropped(At(999));
  EXPECT_THAT(std::string(CheckGenerator(recorder.Result(), {}).message()),
              HasSubstr("1 of 1000 requests were not sent"));
}

// A run that has brought `count` answers of `code`.
RunResult Answers(absl::StatusCode code, int64_t count) {
  RunResult result;
  result.codes[static_cast<size_t>(code)].count = count;
  return result;
}

TEST(IsRefusedForGoodTest, AfterASecondAndTenRefusalsThatWouldBeTheSameAnotherTime) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound, absl::StatusCode::kPermissionDenied,
        absl::StatusCode::kUnauthenticated, absl::StatusCode::kUnimplemented}) {
    EXPECT_TRUE(IsRefusedForGood(Answers(code, 10), seconds(1))) << code;
    EXPECT_FALSE(IsRefusedForGood(Answers(code, 9), seconds(1))) << code;
    EXPECT_FALSE(IsRefusedForGood(Answers(code, 10), milliseconds(999))) << code;
  }
}

TEST(IsRefusedForGoodTest, NotWhenAnotherTimeMayBeBetter) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kResourceExhausted, absl::StatusCode::kDeadlineExceeded}) {
    EXPECT_FALSE(IsRefusedForGood(Answers(code, 1000), seconds(60))) << code;
  }
}

TEST(IsRefusedForGoodTest, NotWhenAnythingElseWasAnswered) {
  for (const absl::StatusCode code : {absl::StatusCode::kOk, absl::StatusCode::kUnavailable}) {
    RunResult result = Answers(absl::StatusCode::kInvalidArgument, 1000);
    result.codes[static_cast<size_t>(code)].count = 1;
    EXPECT_FALSE(IsRefusedForGood(result, seconds(60))) << code;
  }
}

TEST(ShortPercentileTest, OfNothingIsADash) {
  LatencyHistogram histogram;
  EXPECT_EQ(ShortPercentile(histogram, 0.5), "-");
  histogram.Record(Duration(0));
  EXPECT_EQ(ShortPercentile(histogram, 0.5), "0ns");
}

TEST(ShortDurationTest, HasThreeDigits) {
  EXPECT_EQ(ShortDuration(Duration(0)), "0ns");
  EXPECT_EQ(ShortDuration(Duration(999)), "999ns");
  EXPECT_EQ(ShortDuration(Duration(1'234)), "1.23us");
  EXPECT_EQ(ShortDuration(Duration(99'990)), "100us");
  EXPECT_EQ(ShortDuration(Duration(999'999)), "1.00ms");
  EXPECT_EQ(ShortDuration(Duration(12'345'678)), "12.3ms");
  EXPECT_EQ(ShortDuration(seconds(75)), "75.0s");
}

}  // namespace
}  // namespace triad::tools
