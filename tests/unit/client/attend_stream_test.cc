#include "triad/attend_stream.h"

#include <memory>
#include <optional>
#include <set>
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

v1::AttendStreamResponse AnswerTo(const v1::AttendStreamRequest& item) {
  v1::AttendStreamResponse answer;
  answer.set_request_id(item.request_id());
  *answer.mutable_response()->mutable_output() = item.request().value();
  return answer;
}

v1::AttendStreamResponse Error(uint64_t id, int code) {
  v1::AttendStreamResponse answer;
  answer.set_request_id(id);
  answer.mutable_error()->set_code(code);
  return answer;
}

class AttendStreamTest : public ::testing::Test {
 protected:
  std::unique_ptr<AttendStream> Open(const StreamOptions& options = {}) {
    auto stream = server_.Connect().OpenAttendStream(options);
    EXPECT_TRUE(stream.ok()) << stream.status();
    return *std::move(stream);
  }

  const SmallProblem problem_{};
  FakeServer server_;
};

TEST_F(AttendStreamTest, AnswersComeAsItemsFinish) {
  server_.service.attend_stream = [](ServerStream& stream) {
    std::vector<v1::AttendStreamRequest> items;
    for (v1::AttendStreamRequest item; stream.Read(&item);) items.push_back(item);
    for (auto item = items.rbegin(); item != items.rend(); ++item) stream.Write(AnswerTo(*item));
    return grpc::Status::OK;
  };
  const auto stream = Open();
  for (const uint64_t id : {5, 6, 7}) EXPECT_TRUE(stream->Send(id, problem_.Request()).ok());
  EXPECT_TRUE(stream->HalfClose().ok());
  for (const uint64_t id : {7, 6, 5}) {
    const std::optional<AttendAnswer> answer = stream->Next();
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->request_id, id);
    ASSERT_TRUE(answer->response.ok()) << answer->response.status();
    EXPECT_THAT(answer->response->output.float32(), ::testing::ElementsAreArray(problem_.values));
  }
  EXPECT_FALSE(stream->Next().has_value());
  EXPECT_EQ(stream->Finish(), absl::OkStatus());
  EXPECT_EQ(stream->Finish(), absl::OkStatus()) << "the same again";
  EXPECT_FALSE(stream->Next().has_value());
}

TEST_F(AttendStreamTest, ABadItemFailsAlone) {
  server_.service.attend_stream = [](ServerStream& stream) {
    for (v1::AttendStreamRequest item; stream.Read(&item);) {
      stream.Write(item.request_id() == 1 ? Error(1, grpc::StatusCode::INVALID_ARGUMENT) : AnswerTo(item));
    }
    return grpc::Status::OK;
  };
  const auto stream = Open();
  EXPECT_TRUE(stream->Send(1, problem_.Request()).ok());
  EXPECT_TRUE(stream->Send(2, problem_.Request()).ok());
  EXPECT_EQ(stream->Next()->response.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(stream->Next()->response.ok());
  EXPECT_EQ(stream->Finish(), absl::OkStatus());
}

TEST_F(AttendStreamTest, IdsAreUniqueWhileInFlightAndFreeAfterwards) {
  server_.service.attend_stream = [](ServerStream& stream) {
    for (v1::AttendStreamRequest item; stream.Read(&item);) stream.Write(AnswerTo(item));
    return grpc::Status::OK;
  };
  const auto stream = Open();
  EXPECT_TRUE(stream->Send(1, problem_.Request()).ok());
  EXPECT_EQ(stream->Send(1, problem_.Request()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(stream->Next().has_value());
  EXPECT_TRUE(stream->Send(1, problem_.Request()).ok());
  EXPECT_TRUE(stream->Next()->response.ok());
  EXPECT_EQ(stream->Finish(), absl::OkStatus());
}

TEST_F(AttendStreamTest, CancelReachesTheServerForItemsInFlightOnly) {
  server_.service.attend_stream = [](ServerStream& stream) {
    for (v1::AttendStreamRequest item; stream.Read(&item);) {
      if (item.has_cancel()) stream.Write(Error(item.request_id(), grpc::StatusCode::CANCELLED));
    }
    return grpc::Status::OK;
  };
  const auto stream = Open();
  EXPECT_TRUE(stream->Send(1, problem_.Request()).ok());
  EXPECT_TRUE(stream->Cancel(2).ok());
  EXPECT_TRUE(stream->Cancel(1).ok());
  const std::optional<AttendAnswer> answer = stream->Next();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->request_id, 1);
  EXPECT_EQ(answer->response.status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(stream->HalfClose().ok());
  EXPECT_FALSE(stream->Next().has_value()) << "the cancel of 2 was answered";
}

TEST_F(AttendStreamTest, ItemsCarryTheirTimeout) {
  std::vector<v1::AttendStreamRequest> items;
  server_.service.attend_stream = [&](ServerStream& stream) {
    for (v1::AttendStreamRequest item; stream.Read(&item);) items.push_back(item);
    return grpc::Status::OK;
  };
  const auto stream = Open();
  EXPECT_TRUE(stream->Send(1, problem_.Request()).ok());
  EXPECT_TRUE(stream->Send(2, problem_.Request(), {.timeout = absl::Milliseconds(1500)}).ok());
  EXPECT_TRUE(stream->Send(3, problem_.Request(), {.timeout = absl::InfiniteDuration()}).ok());
  EXPECT_EQ(stream->Send(4, problem_.Request(), {.timeout = absl::ZeroDuration()}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(stream->Finish(), absl::OkStatus());
  ASSERT_EQ(items.size(), 3);
  EXPECT_EQ(items[0].timeout().seconds(), 30);
  EXPECT_EQ(items[1].timeout().seconds(), 1);
  EXPECT_EQ(items[1].timeout().nanos(), 500'000'000);
  EXPECT_FALSE(items[2].has_timeout());
}

TEST_F(AttendStreamTest, NothingIsSentAfterHalfClose) {
  server_.service.attend_stream = [](ServerStream& stream) {
    for (v1::AttendStreamRequest item; stream.Read(&item);) {
    }
    return grpc::Status::OK;
  };
  const auto stream = Open();
  EXPECT_TRUE(stream->HalfClose().ok());
  EXPECT_TRUE(stream->HalfClose().ok());
  EXPECT_EQ(stream->Send(1, problem_.Request()).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(stream->Cancel(1).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(stream->Finish(), absl::OkStatus());
}

TEST_F(AttendStreamTest, FinishSaysHowTheServerEndedIt) {
  server_.service.attend_stream = [](ServerStream&) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "an item without an id");
  };
  const auto stream = Open();
  EXPECT_FALSE(stream->Next().has_value());
  EXPECT_EQ(stream->Send(1, problem_.Request()).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(stream->Finish(), absl::InvalidArgumentError("an item without an id"));
}

// Each way to leave a stream whose server says nothing; the handler ends once it sees the client gone.
class AbandonedStreamTest : public AttendStreamTest {
 protected:
  AbandonedStreamTest() {
    server_.service.attend_stream = [this](ServerStream& stream) {
      for (v1::AttendStreamRequest item; stream.Read(&item);) arrived_.Notify();
      return grpc::Status::OK;
    };
  }

  absl::Notification arrived_;
};

TEST_F(AbandonedStreamTest, DestroyingItCancelsIt) {
  auto stream = Open();
  EXPECT_TRUE(stream->Send(1, problem_.Request()).ok());
  arrived_.WaitForNotification();
  stream.reset();
}

TEST_F(AbandonedStreamTest, AStopCancelsIt) {
  std::stop_source stop;
  const auto stream = Open({.cancel = stop.get_token()});
  EXPECT_TRUE(stream->Send(1, problem_.Request()).ok());
  arrived_.WaitForNotification();
  stop.request_stop();
  EXPECT_FALSE(stream->Next().has_value());
  EXPECT_EQ(stream->Finish().code(), absl::StatusCode::kCancelled);
}

TEST_F(AbandonedStreamTest, ItsDeadlineEndsIt) {
  // The question about limits shares the timeout, so it is asked first by another call.
  const Client client = server_.Connect();
  ASSERT_TRUE(client.Attend(problem_.Request()).ok());
  auto stream = client.OpenAttendStream({.timeout = absl::Milliseconds(50)});
  ASSERT_TRUE(stream.ok());
  EXPECT_FALSE((*stream)->Next().has_value());
  EXPECT_EQ((*stream)->Finish().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace triad::client
