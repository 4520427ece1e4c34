#include "client/src/retrying_connection.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

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
  fake_->results = {absl::UnavailableError("draining"), absl::UnavailableError("draining"), absl::OkStatus()};
  EXPECT_TRUE(connection_->Attend(problem_.Request(), {}).ok());
  EXPECT_THAT(runtime_->pauses, ElementsAre(absl::Milliseconds(100), absl::Milliseconds(200)));
}

TEST_F(RetryingConnectionTest, GivesTheLastErrorWhenAttemptsAreUsedUp) {
  fake_->results = {absl::UnavailableError("1"), absl::UnavailableError("2"), absl::UnavailableError("3")};
  EXPECT_EQ(connection_->Attend(problem_.Request(), {}).status(), absl::UnavailableError("3"));
  EXPECT_EQ(fake_->calls.size(), 3);
}

TEST_F(RetryingConnectionTest, EveryAttemptGetsWhatIsLeftOfTheDeadline) {
  fake_->results = {absl::UnavailableError("draining"), absl::OkStatus()};
  fake_->on_attempt = [this] { runtime_->Advance(absl::Milliseconds(30)); };
  EXPECT_TRUE(connection_->Attend(problem_.Request(), {.timeout = absl::Seconds(1)}).ok());
  ASSERT_EQ(fake_->calls.size(), 2);
  EXPECT_EQ(fake_->calls[0].timeout, absl::Milliseconds(1000));
  EXPECT_EQ(fake_->calls[1].timeout, absl::Milliseconds(1000 - 30 - 100));
}

TEST_F(RetryingConnectionTest, DoesNotWaitPastTheDeadline) {
  fake_->results = {absl::UnavailableError("draining")};
  const auto result = connection_->Attend(problem_.Request(), {.timeout = absl::Milliseconds(50)});
  EXPECT_EQ(result.status(), absl::UnavailableError("draining"));
  EXPECT_TRUE(runtime_->pauses.empty());
}

TEST_F(RetryingConnectionTest, ACallWithoutTimeIsNotMade) {
  for (const absl::Duration timeout : {absl::ZeroDuration(), -absl::Seconds(1), -absl::InfiniteDuration()}) {
    const CallOptions options{.timeout = timeout};
    const LayerName layer{.name = "demo"};
    EXPECT_TRUE(absl::IsDeadlineExceeded(connection_->Attend(problem_.Request(), options).status()));
    EXPECT_TRUE(absl::IsDeadlineExceeded(connection_->Forward(problem_.HiddenStates(), options).status()));
    EXPECT_TRUE(absl::IsDeadlineExceeded(connection_->LoadLayer(layer, options).status()));
    EXPECT_TRUE(absl::IsDeadlineExceeded(connection_->UnloadLayer(layer, options)));
    EXPECT_TRUE(absl::IsDeadlineExceeded(connection_->GetServerInfo(options).status()));
    EXPECT_TRUE(absl::IsDeadlineExceeded(connection_->CheckHealth("", options).status()));
    const auto result = AttendAsync(options);
    ASSERT_TRUE(result.has_value());
    EXPECT_TRUE(absl::IsDeadlineExceeded(result->status()));
  }
  EXPECT_TRUE(fake_->calls.empty() && fake_->info_calls.empty());
  EXPECT_EQ(fake_->health_calls, 0);
}

TEST_F(RetryingConnectionTest, WithoutTimeAnAsyncCallDoesNotCallBackFromWithin) {
  bool is_called = false;
  connection_->AttendAsync(problem_.Request(), {.timeout = absl::ZeroDuration()}, [&](auto) { is_called = true; });
  EXPECT_FALSE(is_called);
  runtime_->RunPending();
  EXPECT_TRUE(is_called);
}

TEST_F(RetryingConnectionTest, AStopDuringThePauseEndsTheCall) {
  std::stop_source stop;
  runtime_->on_sleep = [&] { stop.request_stop(); };
  fake_->results = {absl::UnavailableError("draining")};
  const auto result = connection_->Attend(problem_.Request(), {.cancel = stop.get_token()});
  EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("draining"));
  EXPECT_EQ(fake_->calls.size(), 1);
}

TEST_F(RetryingConnectionTest, AsyncTriesAgainUntilItSucceeds) {
  fake_->results = {absl::UnavailableError("draining"), absl::UnavailableError("draining"), absl::OkStatus()};
  const auto result = AttendAsync({});
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->ok());
  EXPECT_THAT(runtime_->pauses, ElementsAre(absl::Milliseconds(100), absl::Milliseconds(200)));
  EXPECT_EQ(fake_->calls[2].timeout, kDefaultTimeout - absl::Milliseconds(300));
}

TEST_F(RetryingConnectionTest, AsyncStopDuringThePauseEndsTheCall) {
  std::stop_source stop;
  fake_->results = {absl::UnavailableError("draining")};
  fake_->on_attempt = [&] { stop.request_stop(); };
  const auto result = AttendAsync({.cancel = stop.get_token()});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(fake_->calls.size(), 1);
}

TEST_F(RetryingConnectionTest, AsyncCallsOutliveTheConnection) {
  auto fake = std::make_shared<FakeConnection>();
  fake->results = {absl::UnavailableError("draining"), absl::OkStatus()};
  std::shared_ptr<Connection> connection = MakeRetryingConnection(std::move(fake), {}, runtime_);
  std::optional<absl::StatusOr<AttendResponse>> result;
  connection->AttendAsync(problem_.Request(), {}, [&](auto answer) { result = std::move(answer); });
  connection.reset();
  runtime_->RunPending();
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(result->ok());
}

TEST_F(RetryingConnectionTest, EveryCallThatOnlyReadsIsMadeAgain) {
  const std::vector<std::function<absl::Status()>> calls = {
      [&] { return connection_->Attend(problem_.Request(), {}).status(); },
      [&] { return connection_->Forward(problem_.HiddenStates(), {}).status(); },
      [&] { return connection_->ListLayers("", {}).status(); },
      [&] { return connection_->GetLayer({.name = "demo"}, {}).status(); },
  };
  for (const auto& call : calls) {
    fake_->results = {absl::UnavailableError("draining"), absl::OkStatus()};
    fake_->calls.clear();
    EXPECT_EQ(call(), absl::OkStatus());
    EXPECT_EQ(fake_->calls.size(), 2);
  }
}

TEST_F(RetryingConnectionTest, ForwardAsyncIsMadeAgain) {
  fake_->results = {absl::UnavailableError("draining"), absl::OkStatus()};
  std::optional<absl::Status> status;
  connection_->ForwardAsync(problem_.HiddenStates(), {}, [&](auto answer) { status = answer.status(); });
  runtime_->RunPending();
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_EQ(fake_->calls.size(), 2);
}

TEST_F(RetryingConnectionTest, ChangesToTheServerAreMadeAgainOnlyWhenItSaysThatItDidNotBegin) {
  const std::vector<std::function<absl::Status()>> calls = {
      [&] { return connection_->LoadLayer({.name = "demo"}, {}).status(); },
      [&] { return connection_->UnloadLayer({.name = "demo", .version = 1}, {}); },
  };
  absl::Status busy = absl::ResourceExhaustedError("busy");
  SetRetryPushback(absl::Milliseconds(5), busy);
  for (const auto& call : calls) {
    fake_->results = {absl::UnavailableError("connection lost"), absl::OkStatus()};
    EXPECT_EQ(call(), absl::UnavailableError("connection lost"));
    fake_->results = {busy, absl::OkStatus()};
    EXPECT_EQ(call(), absl::OkStatus());
  }
}

TEST_F(RetryingConnectionTest, HealthIsAboutNowAndAskedOnce) {
  fake_->health = absl::UnavailableError("no server");
  EXPECT_EQ(connection_->CheckHealth("", {}).status(), absl::UnavailableError("no server"));
  EXPECT_EQ(fake_->health_calls, 1);
}

}  // namespace
}  // namespace triad::client
