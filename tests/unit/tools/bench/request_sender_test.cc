#include "client/tools/bench/request_sender.h"

#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "core/base/mutex.h"
#include "gtest/gtest.h"
#include "triad/connection.h"

namespace triad::tools {
namespace {

// Answers each item when the test says so; ends when it is half-closed and all is answered, or is broken.
class FakeStream final : public client::AttendStream {
 public:
  struct State {
    Mutex mu;
    CondVar changed;
    std::deque<uint64_t> sent ABSL_GUARDED_BY(mu);
    std::deque<uint64_t> answered ABSL_GUARDED_BY(mu);
    bool half_closed ABSL_GUARDED_BY(mu) = false;
    absl::Status broken ABSL_GUARDED_BY(mu);

    void AnswerLatest() {
      MutexLock lock(mu);
      answered.push_back(sent.back());
      sent.pop_back();
      changed.SignalAll();
    }
    void Break(absl::Status status) {
      MutexLock lock(mu);
      broken = std::move(status);
      changed.SignalAll();
    }
  };

  explicit FakeStream(std::shared_ptr<State> state) : state_(std::move(state)) {}

  absl::Status Send(uint64_t id, const client::AttendRequest&, const client::ItemOptions&) override {
    MutexLock lock(state_->mu);
    if (!state_->broken.ok()) return absl::UnavailableError("the stream has ended");
    state_->sent.push_back(id);
    return absl::OkStatus();
  }
  absl::Status Cancel(uint64_t) override { return absl::OkStatus(); }
  absl::Status HalfClose() override {
    MutexLock lock(state_->mu);
    state_->half_closed = true;
    state_->changed.SignalAll();
    return absl::OkStatus();
  }
  std::optional<client::AttendAnswer> Next() override {
    MutexLock lock(state_->mu);
    while (state_->answered.empty()) {
      if (!state_->broken.ok() || (state_->half_closed && state_->sent.empty())) return std::nullopt;
      state_->changed.Wait(state_->mu);
    }
    client::AttendAnswer answer{state_->answered.front(), client::AttendResponse()};
    state_->answered.pop_front();
    answer.response->timings.queue = absl::Seconds(static_cast<int64_t>(answer.request_id));
    return answer;
  }
  absl::Status Finish() override {
    MutexLock lock(state_->mu);
    return state_->broken;
  }

 private:
  const std::shared_ptr<State> state_;
};

class StreamConnection final : public client::Connection {
 public:
  explicit StreamConnection(std::shared_ptr<FakeStream::State> state) : state_(std::move(state)) {}
  absl::StatusOr<std::unique_ptr<client::AttendStream>> OpenAttendStream(const client::StreamOptions&) override {
    return std::make_unique<FakeStream>(state_);
  }

 private:
  const std::shared_ptr<FakeStream::State> state_;
};

// Keeps what it is told to stop by.
class CancelConnection final : public client::Connection {
 public:
  void AttendAsync(const client::AttendRequest&, const client::CallOptions& options, client::AttendCallback) override {
    cancel = options.cancel;
  }
  absl::StatusOr<std::unique_ptr<client::AttendStream>> OpenAttendStream(
      const client::StreamOptions& options) override {
    cancel = options.cancel;
    return absl::UnavailableError("not here");
  }

  std::stop_token cancel;
};

TEST(SenderOptionsTest, AStopReachesCallsAndStreams) {
  const PlannedRequest plan = {.tokens = 1, .kv_len = 1, .seed = 1};
  const RequestBuilder builder = *RequestBuilder::Create({}, plan);
  const auto connection = std::make_shared<CancelConnection>();
  const std::stop_source stop;
  const SenderOptions options = {.cancel = stop.get_token()};
  const auto sender = MakeUnarySender(client::Client(connection), builder, options);
  ASSERT_TRUE(sender->Send(plan, [](const Reply&) {}).ok());
  EXPECT_EQ(connection->cancel, stop.get_token());
  connection->cancel = {};
  EXPECT_FALSE(MakeStreamSender(client::Client(connection), builder, options).ok());
  EXPECT_EQ(connection->cancel, stop.get_token());
}

// Replies, to be awaited one by one.
class Inbox {
 public:
  ReplyCallback Callback() {
    return [this](Reply reply) {
      MutexLock lock(mu_);
      replies_.push_back(std::move(reply));
      changed_.SignalAll();
    };
  }
  Reply Await() {
    MutexLock lock(mu_);
    while (replies_.empty()) changed_.Wait(mu_);
    Reply reply = std::move(replies_.front());
    replies_.pop_front();
    return reply;
  }

 private:
  Mutex mu_;
  CondVar changed_;
  std::deque<Reply> replies_ ABSL_GUARDED_BY(mu_);
};

class StreamSenderTest : public ::testing::Test {
 protected:
  const PlannedRequest plan_ = {.tokens = 1, .kv_len = 1, .seed = 1};
  const RequestBuilder builder_ = *RequestBuilder::Create({}, plan_);
  const std::shared_ptr<FakeStream::State> state_ = std::make_shared<FakeStream::State>();
  std::unique_ptr<RequestSender> sender_ =
      *MakeStreamSender(client::Client(std::make_shared<StreamConnection>(state_)), builder_, {});
};

TEST_F(StreamSenderTest, AnswersFindTheirRequestsInAnyOrder) {
  Inbox first;
  Inbox second;
  ASSERT_TRUE(sender_->Send(plan_, first.Callback()).ok());
  ASSERT_TRUE(sender_->Send(plan_, second.Callback()).ok());
  state_->AnswerLatest();
  EXPECT_EQ(second.Await().timings.queue, absl::Seconds(2));
  state_->AnswerLatest();
  EXPECT_EQ(first.Await().timings.queue, absl::Seconds(1));
}

TEST_F(StreamSenderTest, WhenTheStreamBreaksAllThatWaitAreToldWhyAndNothingMoreIsSent) {
  Inbox inbox;
  ASSERT_TRUE(sender_->Send(plan_, inbox.Callback()).ok());
  ASSERT_TRUE(sender_->Send(plan_, inbox.Callback()).ok());
  state_->Break(absl::UnavailableError("connection reset"));
  EXPECT_EQ(inbox.Await().status, absl::UnavailableError("connection reset"));
  EXPECT_EQ(inbox.Await().status, absl::UnavailableError("connection reset"));
  EXPECT_EQ(sender_->Send(plan_, inbox.Callback()).code(), absl::StatusCode::kUnavailable);
}

TEST_F(StreamSenderTest, TheEndWaitsForAnswers) {
  Inbox inbox;
  ASSERT_TRUE(sender_->Send(plan_, inbox.Callback()).ok());
  state_->AnswerLatest();
  sender_.reset();
  EXPECT_TRUE(inbox.Await().status.ok());
}

}  // namespace
}  // namespace triad::tools
