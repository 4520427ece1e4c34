#include "client/src/limit_checking_connection.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client/src/attend_messages.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/fake_connection.h"
#include "tests/unit/client/fake_runtime.h"

namespace triad::client {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTrustedFor = absl::Seconds(60);

// Counts what is sent.
template <class Stream>
class CountingStream final : public Stream {
 public:
  explicit CountingStream(int& sent) : sent_(sent) {}
  absl::Status Send(uint64_t, const typename Stream::Request&, const ItemOptions&) override {
    ++sent_;
    return absl::OkStatus();
  }
  absl::Status Cancel(uint64_t) override { return absl::OkStatus(); }
  absl::Status HalfClose() override { return absl::OkStatus(); }
  std::optional<typename Stream::Answer> Next() override { return std::nullopt; }
  absl::Status Finish() override { return absl::OkStatus(); }

 private:
  int& sent_;
};

class LimitCheckingConnectionTest : public ::testing::Test {
 protected:
  std::shared_ptr<Connection> Connect(int64_t max_message_bytes = 1 << 20) {
    return MakeLimitCheckingConnection(
        fake_, {.max_message_bytes = max_message_bytes, .target = "host:1", .trusted_for = kTrustedFor}, runtime_);
  }
  void SetServerLimit(int64_t max_message_bytes) { fake_->info->limits.max_message_bytes = max_message_bytes; }

  const SmallProblem problem_{};
  const int64_t bytes_ = Encode(problem_.Request()).byte_size();
  const std::shared_ptr<FakeRuntime> runtime_ = std::make_shared<FakeRuntime>();
  const std::shared_ptr<FakeConnection> fake_ = std::make_shared<FakeConnection>();
};

TEST_F(LimitCheckingConnectionTest, AsksTheServerOnce) {
  const auto connection = Connect();
  EXPECT_TRUE(connection->Attend(problem_.Request(), {}).ok());
  EXPECT_TRUE(connection->Attend(problem_.Request(), {}).ok());
  EXPECT_EQ(fake_->info_calls.size(), 1);
  EXPECT_EQ(fake_->calls.size(), 2);
}

TEST_F(LimitCheckingConnectionTest, RefusesPastTheServersLimitToTheByte) {
  SetServerLimit(bytes_ - 1);
  const auto refused = Connect()->Attend(problem_.Request(), {});
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--max_message_bytes of the server at host:1"));
  EXPECT_TRUE(fake_->calls.empty());
  SetServerLimit(bytes_);
  EXPECT_TRUE(Connect()->Attend(problem_.Request(), {}).ok());
}

TEST_F(LimitCheckingConnectionTest, RefusesPastItsOwnLimitWithoutAskingTheServer) {
  const auto refused = Connect(bytes_ - 1)->Attend(problem_.Request(), {});
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("max_message_bytes of this client"));
  EXPECT_TRUE(fake_->info_calls.empty());
}

TEST_F(LimitCheckingConnectionTest, ACallFailsAsItsQuestionDid) {
  fake_->info = absl::UnavailableError("no server");
  const auto connection = Connect();
  EXPECT_EQ(connection->Attend(problem_.Request(), {}).status(), absl::UnavailableError("no server"));
  fake_->info = ServerInfo();
  EXPECT_TRUE(connection->Attend(problem_.Request(), {}).ok()) << "the next call asks again";
}

TEST_F(LimitCheckingConnectionTest, AServerThatDoesNotSayIsNotAskedAgain) {
  fake_->info = absl::UnimplementedError("GetServerInfo");
  const auto connection = Connect();
  EXPECT_TRUE(connection->Attend(problem_.Request(), {}).ok());
  EXPECT_TRUE(connection->Attend(problem_.Request(), {}).ok());
  EXPECT_EQ(fake_->info_calls.size(), 1);
}

TEST_F(LimitCheckingConnectionTest, OldLimitsAreAskedForAgainBeforeTheyRefuse) {
  SetServerLimit(bytes_ - 1);
  const auto connection = Connect();
  EXPECT_FALSE(connection->Attend(problem_.Request(), {}).ok());
  SetServerLimit(bytes_);  // the server has been restarted
  runtime_->Advance(kTrustedFor - absl::Nanoseconds(1));
  EXPECT_FALSE(connection->Attend(problem_.Request(), {}).ok());
  EXPECT_EQ(fake_->info_calls.size(), 1) << "not yet";
  runtime_->Advance(absl::Nanoseconds(1));
  EXPECT_TRUE(connection->Attend(problem_.Request(), {}).ok());
  EXPECT_EQ(fake_->info_calls.size(), 2);
  EXPECT_EQ(fake_->calls.size(), 1);
}

TEST_F(LimitCheckingConnectionTest, OldLimitsThatStillHoldRefuseAndAreTrustedAgain) {
  SetServerLimit(bytes_ - 1);
  const auto connection = Connect();
  for (size_t round = 1; round <= 3; ++round) {
    for (int i = 0; i < 2; ++i) {
      const auto refused = connection->Attend(problem_.Request(), {});
      EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--max_message_bytes of the server"));
    }
    EXPECT_EQ(fake_->info_calls.size(), round) << "asked once for both";
    runtime_->Advance(kTrustedFor);
  }
}

TEST_F(LimitCheckingConnectionTest, OldLimitsThatPassARequestAreNotAskedForAgain) {
  const auto connection = Connect();
  EXPECT_TRUE(connection->Attend(problem_.Request(), {}).ok());
  runtime_->Advance(absl::Hours(100));
  EXPECT_TRUE(connection->Attend(problem_.Request(), {}).ok());
  EXPECT_EQ(fake_->info_calls.size(), 1);
}

TEST_F(LimitCheckingConnectionTest, WhoCannotBeAskedAgainDoesNotRefuse) {
  SetServerLimit(bytes_ - 1);
  const auto connection = Connect();
  EXPECT_FALSE(connection->Attend(problem_.Request(), {}).ok());
  runtime_->Advance(kTrustedFor);
  fake_->info = absl::UnavailableError("restarting");
  EXPECT_EQ(connection->Attend(problem_.Request(), {}).status(), absl::UnavailableError("restarting"));
  fake_->info = ServerInfo();
  EXPECT_TRUE(connection->Attend(problem_.Request(), {}).ok()) << "the next call asks again";
}

TEST_F(LimitCheckingConnectionTest, AsyncCallsAndStreamsAskAgainToo) {
  SetServerLimit(bytes_ - 1);
  int sent = 0;
  fake_->attend_stream = std::make_unique<CountingStream<AttendStream>>(sent);
  const auto connection = Connect();
  auto stream = connection->OpenAttendStream({});
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ((*stream)->Send(1, problem_.Request()).code(), absl::StatusCode::kInvalidArgument);
  SetServerLimit(bytes_ + 1000);
  runtime_->Advance(kTrustedFor);
  EXPECT_TRUE((*stream)->Send(1, problem_.Request()).ok());
  EXPECT_EQ(sent, 1);
  SetServerLimit(1);
  AttendRequest longer = problem_.Request();
  longer.sinks.resize(1000);
  std::optional<absl::Status> status;
  const auto done = [&](auto answer) { status = answer.status(); };
  runtime_->Advance(kTrustedFor);
  connection->AttendAsync(longer, {}, done);
  EXPECT_EQ(status.value_or(absl::OkStatus()).code(), absl::StatusCode::kInvalidArgument);
  SetServerLimit(1 << 20);
  runtime_->Advance(kTrustedFor);
  connection->AttendAsync(longer, {}, done);
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_EQ(fake_->info_calls.size(), 4);
  EXPECT_EQ(fake_->calls.size(), 1);
}

TEST_F(LimitCheckingConnectionTest, AsyncChecksTheSame) {
  SetServerLimit(bytes_ - 1);
  const auto connection = Connect();
  for (const bool limits_are_known : {false, true}) {
    std::optional<absl::Status> status;
    connection->AttendAsync(problem_.Request(), {}, [&](auto answer) { status = answer.status(); });
    EXPECT_FALSE(limits_are_known && status.has_value()) << "called back from within AttendAsync";
    runtime_->RunPending();
    ASSERT_TRUE(status.has_value());
    EXPECT_THAT(std::string(status->message()), HasSubstr("--max_message_bytes of the server"));
  }
  EXPECT_TRUE(fake_->calls.empty());
}

TEST_F(LimitCheckingConnectionTest, AsyncAttendsOnceLimitsAreKnown) {
  std::optional<absl::Status> status;
  Connect()->AttendAsync(problem_.Request(), {}, [&](auto answer) { status = answer.status(); });
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_EQ(fake_->info_calls.size(), 1);
  EXPECT_EQ(fake_->calls.size(), 1);
}

TEST_F(LimitCheckingConnectionTest, StreamItemsAreCheckedBeforeTheyAreSent) {
  int sent = 0;
  fake_->attend_stream = std::make_unique<CountingStream<AttendStream>>(sent);
  auto stream = Connect()->OpenAttendStream({});
  ASSERT_TRUE(stream.ok());
  AttendRequest torn = problem_.Request();
  torn.key.data.remove_suffix(1);
  EXPECT_EQ((*stream)->Send(1, torn).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sent, 0);
  EXPECT_TRUE((*stream)->Send(1, problem_.Request()).ok());
  EXPECT_EQ(sent, 1);
}

TEST_F(LimitCheckingConnectionTest, ForwardIsCheckedInEveryForm) {
  int sent = 0;
  fake_->forward_stream = std::make_unique<CountingStream<ForwardStream>>(sent);
  fake_->info->limits.max_tokens_per_request = 3;  // two queries and two keys
  const ForwardRequest request = problem_.HiddenStates();
  const auto expect_refused = [](const absl::Status& status) {
    EXPECT_THAT(std::string(status.message()), HasSubstr("at most 3, --max_tokens_per_request"));
  };
  const auto connection = Connect();
  expect_refused(connection->Forward(request, {}).status());
  std::optional<absl::Status> status;
  connection->ForwardAsync(request, {}, [&](auto answer) { status = answer.status(); });
  runtime_->RunPending();
  expect_refused(status.value_or(absl::OkStatus()));
  auto stream = connection->OpenForwardStream({});
  ASSERT_TRUE(stream.ok());
  expect_refused((*stream)->Send(1, request));
  EXPECT_EQ(sent, 0);
  EXPECT_TRUE(fake_->calls.empty());
}

TEST_F(LimitCheckingConnectionTest, ForwardPassesWhatIsWithinTheLimits) {
  EXPECT_TRUE(Connect()->Forward(problem_.HiddenStates(), {}).ok());
  std::optional<absl::Status> status;
  Connect()->ForwardAsync(problem_.HiddenStates(), {}, [&](auto answer) { status = answer.status(); });
  EXPECT_EQ(status, absl::OkStatus());
  EXPECT_EQ(fake_->calls.size(), 2);
}

TEST_F(LimitCheckingConnectionTest, QuestionsAboutLayersPassThrough) {
  const auto connection = Connect();
  EXPECT_TRUE(connection->ListLayers("", {}).ok());
  EXPECT_TRUE(connection->GetLayer({.name = "demo"}, {}).ok());
  EXPECT_TRUE(connection->LoadLayer({.name = "demo"}, {}).ok());
  EXPECT_TRUE(connection->UnloadLayer({.name = "demo", .version = 1}, {}).ok());
  EXPECT_EQ(fake_->calls.size(), 4);
  EXPECT_TRUE(fake_->info_calls.empty());
}

}  // namespace
}  // namespace triad::client
