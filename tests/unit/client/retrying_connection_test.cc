#include "client/src/retrying_connection.h"

#include <memory>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/fake_connection.h"
#include "tests/unit/client/fake_runtime.h"

namespace triad::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Pauses of 100 ms, 200 ms, ... as FakeRuntime draws the longest.
class RetryingConnectionTest : public ::testing::Test {
 protected:
  std::optional<absl::StatusOr<AttendResponse>> AttendAsync(const CallOptions& options) {
    std::optional<absl::StatusOr<AttendResponse>> result;
    connection_->AttendAsync(problem_.Request(), options, [&](auto answer) {
      EXPECT_FALSE(result.has_value()) << "called twice";
      result = std::move(answer);
    });
    runtime_->RunPending();
    return result;
  }

  const SmallProblem problem_{};
  const std::shared_ptr<FakeRuntime> runtime_ = std::make_shared<FakeRuntime>();
  const std::shared_ptr<FakeConnection> fake_ = std::make_shared<FakeConnection>();
  const std::shared_ptr<Connection> connection_ = MakeRetryingConnection(fake_, {.max_attempts = 3}, runtime_);
};

TEST_F(RetryingConnectionTest, TriesAgainUntilItSucceeds) {
  fake_->attend_results = {absl::UnavailableError("draining"), absl::UnavailableError("draining"), AttendResponse()};
  EXPECT_TRUE(connection_->Attend(problem_.Request(), {}).ok());
  EXPECT_THAT(runtime_->pauses, ElementsAre(absl::Milliseconds(100), absl::Milliseconds(200)));
}

TEST_F(RetryingConnectionTest, GivesTheLastErrorWhenAttemptsAreUsedUp) {
  fake_->attend_results = {absl::UnavailableError("1"), absl::UnavailableError("2"), absl::UnavailableError("3")};
  EXPECT_EQ(connection_->Attend(problem_.Request(), {}).status(), absl::UnavailableError("3"));
  EXPECT_EQ(fake_->attend_calls.size(), 3);
}

TEST_F(RetryingConnectionTest, EveryAttemptGetsWhatIsLeftOfTheDeadline) {
  fake_->attend_results = {absl::UnavailableError("draining"), AttendResponse()};
  fake_->on_attend = [this] { runtime_->Advance(absl::Milliseconds(30)); };
  EXPECT_TRUE(connection_->Attend(problem_.Request(), {.timeout = absl::Seconds(1)}).ok());
  ASSERT_EQ(fake_->attend_calls.size(), 2);
  EXPECT_EQ(fake_->attend_calls[0].timeout, absl::Milliseconds(1000));
  EXPECT_EQ(fake_->attend_calls[1].timeout, absl::Milliseconds(1000 - 30 - 100));
}

TEST_F(RetryingConnectionTest, DoesNotWaitPastTheDeadline) {
  fake_->attend_results = {absl::UnavailableError("draining")};
  const auto result = connection_->Attend(problem_.Request(), {.timeout = absl::Milliseconds(50)});
  EXPECT_EQ(result.status(), absl::UnavailableError("draining"));
  EXPECT_TRUE(runtime_->pauses.empty());
}

TEST_F(RetryingConnectionTest, AStopDuringThePauseEndsTheCall) {
  std::stop_source stop;
  runtime_->on_sleep = [&] { stop.request_stop(); };
  fake_->attend_results = {absl::UnavailableError("draining")};
  const auto result = connection_->Attend(problem_.Request(), {.cancel = stop.get_token()});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("draining"));
  EXPECT_EQ(fake_->attend_calls.size(), 1);
}

TEST_F(RetryingConnectionTest, AsyncTriesAgainUntilItSucceeds) {
  fake_->attend_results = {absl::UnavailableError("draining"), absl::UnavailableError("draining"), AttendResponse()};
  const auto result = AttendAsync({});
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->ok());
  EXPECT_THAT(runtime_->pauses, ElementsAre(absl::Milliseconds(100), absl::Milliseconds(200)));
  EXPECT_EQ(fake_->attend_calls[2].timeout, kDefaultTimeout - absl::Milliseconds(300));
}

TEST_F(RetryingConnectionTest, AsyncStopDuringThePauseEndsTheCall) {
  std::stop_source stop;
  fake_->attend_results = {absl::UnavailableError("draining")};
  fake_->on_attend = [&] { stop.request_stop(); };
  const auto result = AttendAsync({.cancel = stop.get_token()});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(fake_->attend_calls.size(), 1);
}

TEST_F(RetryingConnectionTest, AsyncCallsOutliveTheConnection) {
  auto fake = std::make_shared<FakeConnection>();
  fake->attend_results = {absl::UnavailableError("draining"), AttendResponse()};
  std::shared_ptr<Connection> connection = MakeRetryingConnection(std::move(fake), {}, runtime_);
  std::optional<absl::StatusOr<AttendResponse>> result;
  connection->AttendAsync(problem_.Request(), {}, [&](auto answer) { result = std::move(answer); });
  connection.reset();
  runtime_->RunPending();
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->ok());
}

TEST_F(RetryingConnectionTest, HealthIsAboutNowAndAskedOnce) {
  fake_->health = absl::UnavailableError("no server");
  EXPECT_EQ(connection_->CheckHealth("", {}).status(), absl::UnavailableError("no server"));
  EXPECT_EQ(fake_->health_calls, 1);
}

}  // namespace
}  // namespace triad::client
