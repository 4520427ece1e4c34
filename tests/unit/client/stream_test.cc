// Both streams against a server in this process: one implementation, two sets of messages.
#include "triad/stream.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/fake_connection.h"
#include "tests/unit/client/fake_server.h"

namespace triad::client {
namespace {

struct AttendKind {
  using Stream = AttendStream;
  using Items = AttendItems;
  using Item = v1::AttendStreamRequest;
  using Reply = v1::AttendStreamResponse;

  static auto Open(const Client& client, const StreamOptions& options) { return client.OpenAttendStream(options); }
  static auto& Handler(FakeService& service) { return service.attend_stream; }
  static AttendRequest Request(const SmallProblem& problem) { return problem.Request(); }
  static const v1::Tensor& Echoed(const Item& item) { return item.request().value(); }
};

struct ForwardKind {
  using Stream = ForwardStream;
  using Items = ForwardItems;
  using Item = v1::ForwardStreamRequest;
  using Reply = v1::ForwardStreamResponse;

  static auto Open(const Client& client, const StreamOptions& options) { return client.OpenForwardStream(options); }
  static auto& Handler(FakeService& service) { return service.forward_stream; }
  static ForwardRequest Request(const SmallProblem& problem) { return problem.HiddenStates(); }
  static const v1::Tensor& Echoed(const Item& item) { return item.request().input(); }
};

template <class Kind>
class StreamTest : public ::testing::Test {
 protected:
  using Items = typename Kind::Items;
  using Item = typename Kind::Item;
  using Reply = typename Kind::Reply;
  using Answer = typename Kind::Stream::Answer;

  static Reply AnswerTo(const Item& item) {
    Reply answer;
    answer.set_request_id(item.request_id());
    *answer.mutable_response()->mutable_output() = Kind::Echoed(item);
    return answer;
  }
  static Reply Error(uint64_t id, int code) {
    Reply answer;
    answer.set_request_id(id);
    answer.mutable_error()->set_code(code);
    return answer;
  }

  // Sets what the server does with a stream.
  void Serve(std::function<grpc::Status(Items&)> handler) { Kind::Handler(server_.service) = std::move(handler); }
  std::unique_ptr<typename Kind::Stream> Open(const StreamOptions& options = {}) {
    auto stream = Kind::Open(server_.Connect(), options);
    EXPECT_TRUE(stream.ok()) << stream.status();
    return *std::move(stream);
  }

  const SmallProblem problem_{};
  const decltype(Kind::Request(problem_)) request_ = Kind::Request(problem_);
  FakeServer server_;
};

using Kinds = ::testing::Types<AttendKind, ForwardKind>;
TYPED_TEST_SUITE(StreamTest, Kinds);

TYPED_TEST(StreamTest, AnswersComeAsItemsFinish) {
  this->Serve([](typename TestFixture::Items& stream) {
    std::vector<typename TestFixture::Item> items;
    for (typename TestFixture::Item item; stream.Read(&item);) items.push_back(item);
    for (auto item = items.rbegin(); item != items.rend(); ++item) stream.Write(TestFixture::AnswerTo(*item));
    return grpc::Status::OK;
  });
  const auto stream = this->Open();
  for (const uint64_t id : {5, 6, 7}) EXPECT_TRUE(stream->Send(id, this->request_).ok());
  EXPECT_TRUE(stream->HalfClose().ok());
  for (const uint64_t id : {7, 6, 5}) {
    const std::optional<typename TestFixture::Answer> answer = stream->Next();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->request_id, id);
    ASSERT_TRUE(answer->response.ok()) << answer->response.status();
    EXPECT_THAT(answer->response->output.float32(), ::testing::ElementsAreArray(this->problem_.values));
  }
  EXPECT_FALSE(stream->Next().has_value());
  EXPECT_EQ(stream->Finish(), absl::OkStatus());
  EXPECT_EQ(stream->Finish(), absl::OkStatus()) << "the same again";
  EXPECT_FALSE(stream->Next().has_value());
}

TYPED_TEST(StreamTest, ABadItemFailsAlone) {
  this->Serve([](typename TestFixture::Items& stream) {
    for (typename TestFixture::Item item; stream.Read(&item);) {
      stream.Write(item.request_id() == 1 ? TestFixture::Error(1, grpc::StatusCode::INVALID_ARGUMENT)
                                          : TestFixture::AnswerTo(item));
    }
    return grpc::Status::OK;
  });
  const auto stream = this->Open();
  EXPECT_TRUE(stream->Send(1, this->request_).ok());
  EXPECT_TRUE(stream->Send(2, this->request_).ok());
  EXPECT_EQ(stream->Next()->response.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(stream->Next()->response.ok());
  EXPECT_EQ(stream->Finish(), absl::OkStatus());
}

TYPED_TEST(StreamTest, IdsAreUniqueWhileInFlightAndFreeAfterwards) {
  this->Serve([](typename TestFixture::Items& stream) {
    for (typename TestFixture::Item item; stream.Read(&item);) stream.Write(TestFixture::AnswerTo(item));
    return grpc::Status::OK;
  });
  const auto stream = this->Open();
  EXPECT_TRUE(stream->Send(1, this->request_).ok());
  EXPECT_EQ(stream->Send(1, this->request_).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(stream->Next().has_value());
  EXPECT_TRUE(stream->Send(1, this->request_).ok());
  EXPECT_TRUE(stream->Next()->response.ok());
  EXPECT_EQ(stream->Finish(), absl::OkStatus());
}

TYPED_TEST(StreamTest, CancelReachesTheServerForItemsInFlightOnly) {
  this->Serve([](typename TestFixture::Items& stream) {
    for (typename TestFixture::Item item; stream.Read(&item);) {
      if (item.has_cancel()) stream.Write(TestFixture::Error(item.request_id(), grpc::StatusCode::CANCELLED));
    }
    return grpc::Status::OK;
  });
  const auto stream = this->Open();
  EXPECT_TRUE(stream->Send(1, this->request_).ok());
  EXPECT_TRUE(stream->Cancel(2).ok());
  EXPECT_TRUE(stream->Cancel(1).ok());
  const std::optional<typename TestFixture::Answer> answer = stream->Next();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->request_id, 1);
  EXPECT_EQ(answer->response.status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(stream->HalfClose().ok());
  EXPECT_FALSE(stream->Next().has_value()) << "the cancel of 2 was answered";
}

TYPED_TEST(StreamTest, ItemsCarryTheirTimeout) {
  std::vector<typename TestFixture::Item> items;
  this->Serve([&](typename TestFixture::Items& stream) {
    for (typename TestFixture::Item item; stream.Read(&item);) items.push_back(item);
    return grpc::Status::OK;
  });
  const auto stream = this->Open();
  EXPECT_TRUE(stream->Send(1, this->request_).ok());
  EXPECT_TRUE(stream->Send(2, this->request_, {.timeout = absl::Milliseconds(1500)}).ok());
  EXPECT_TRUE(stream->Send(3, this->request_, {.timeout = absl::InfiniteDuration()}).ok());
  EXPECT_EQ(stream->Send(4, this->request_, {.timeout = absl::ZeroDuration()}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(stream->Finish(), absl::OkStatus());
  ASSERT_EQ(items.size(), 3);
  EXPECT_EQ(items[0].timeout().seconds(), 30);
  EXPECT_EQ(items[1].timeout().seconds(), 1);
  EXPECT_EQ(items[1].timeout().nanos(), 500'000'000);
  EXPECT_FALSE(items[2].has_timeout());
}

TYPED_TEST(StreamTest, NothingIsSentAfterHalfClose) {
  this->Serve([](typename TestFixture::Items& stream) {
    for (typename TestFixture::Item item; stream.Read(&item);) {
    }
    return grpc::Status::OK;
  });
  const auto stream = this->Open();
  EXPECT_TRUE(stream->HalfClose().ok());
  EXPECT_TRUE(stream->HalfClose().ok());
  EXPECT_EQ(stream->Send(1, this->request_).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(stream->Cancel(1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(stream->Finish(), absl::OkStatus());
}

TYPED_TEST(StreamTest, FinishSaysHowTheServerEndedIt) {
  this->Serve([](typename TestFixture::Items&) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "an item without an id");
  });
  const auto stream = this->Open();
  EXPECT_FALSE(stream->Next().has_value());
  EXPECT_EQ(stream->Send(1, this->request_).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(stream->Finish(), absl::InvalidArgumentError("an item without an id"));
}

// Each way to leave a stream whose server says nothing; the handler ends once it sees the client gone.
template <class Kind>
class AbandonedStreamTest : public StreamTest<Kind> {
 protected:
  AbandonedStreamTest() {
    this->Serve([this](typename Kind::Items& stream) {
      for (typename Kind::Item item; stream.Read(&item);) arrived_.Notify();
      return grpc::Status::OK;
    });
  }

  absl::Notification arrived_;
};
TYPED_TEST_SUITE(AbandonedStreamTest, Kinds);

TYPED_TEST(AbandonedStreamTest, DestroyingItCancelsIt) {
  auto stream = this->Open();
  EXPECT_TRUE(stream->Send(1, this->request_).ok());
  this->arrived_.WaitForNotification();
  stream.reset();
}

TYPED_TEST(AbandonedStreamTest, AStopCancelsIt) {
  std::stop_source stop;
  const auto stream = this->Open({.cancel = stop.get_token()});
  EXPECT_TRUE(stream->Send(1, this->request_).ok());
  this->arrived_.WaitForNotification();
  stop.request_stop();
  EXPECT_FALSE(stream->Next().has_value());
  EXPECT_EQ(stream->Finish().code(), absl::StatusCode::kCancelled);
}

TYPED_TEST(AbandonedStreamTest, ItsDeadlineEndsIt) {
  // The question about limits shares the timeout, so it is asked first by another call.
  const Client client = this->server_.Connect();
  ASSERT_TRUE(client.Attend(this->problem_.Request()).ok());
  auto stream = TypeParam::Open(client, {.timeout = absl::Milliseconds(50)});
  ASSERT_TRUE(stream.ok());
  EXPECT_FALSE((*stream)->Next().has_value());
  EXPECT_EQ((*stream)->Finish().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace triad::client
