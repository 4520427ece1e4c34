// Tensors with owners through the whole client, to a server in this process.
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/unit/client/fake_server.h"
#include "triad/client.h"

namespace triad::client {
namespace {

// Values that say when the last owner has let go of them.
class SharedTensorsTest : public ::testing::Test {
 protected:
  static constexpr int64_t kTokens = 1 << 18;  // 1 MiB: several frames, and more than a socket takes at once

  // The request's three tensors are one array, whose only owners they are. `held` goes with it.
  template <class Held = int>
  AttendRequest Request(Held held = {}) {
    auto values = std::make_shared<std::pair<std::vector<float>, Held>>(std::vector<float>(kTokens, 1.5F), held);
    TensorView tensor = TensorView::Float32(values->first, {1, kTokens, 1, 1});
    tensor.owner = std::shared_ptr<const void>(tensor.data.data(), [this, last = std::move(values)](auto) mutable {
      last.reset();
      released_.Notify();
    });
    return {.query = tensor, .key = tensor, .value = tensor};
  }

  static void ExpectEchoed(const absl::StatusOr<AttendResponse>& answer) {
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->output.float32(), absl::MakeConstSpan(std::vector<float>(kTokens, 1.5F)));
  }

  absl::Notification released_;
  absl::Notification arrived_;  // of a handler that is held until the other
  absl::Notification release_;
  FakeServer server_;  // last member: its handlers and connections end before what they touch
};

TEST_F(SharedTensorsTest, ACallBringsTheAnswerAndLetsGo) {
  ExpectEchoed(server_.Connect().Attend(Request()));
  released_.WaitForNotification();
}

TEST_F(SharedTensorsTest, ACallWithoutAWaitingThreadDoesToo) {
  absl::StatusOr<AttendResponse> answer;
  absl::Notification arrived;
  server_.Connect().AttendAsync(Request(), {}, [&](absl::StatusOr<AttendResponse> result) {
    answer = std::move(result);
    arrived.Notify();
  });
  arrived.WaitForNotification();
  ExpectEchoed(answer);
  released_.WaitForNotification();
}

TEST_F(SharedTensorsTest, AnItemOfAStreamDoesToo) {
  server_.service.attend_stream = [](AttendItems& stream) {
    for (v1::AttendStreamRequest item; stream.Read(&item);) {
      v1::AttendStreamResponse answer;
      answer.set_request_id(item.request_id());
      *answer.mutable_response()->mutable_output() = item.request().value();
      stream.Write(answer);
    }
    return grpc::Status::OK;
  };
  const auto stream = server_.Connect().OpenAttendStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  ASSERT_TRUE((*stream)->Send(7, Request()).ok());
  const std::optional<AttendAnswer> answer = (*stream)->Next();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->request_id, 7u);
  ExpectEchoed(answer->response);
  EXPECT_EQ((*stream)->Finish(), absl::OkStatus());
  released_.WaitForNotification();
}

TEST_F(SharedTensorsTest, ARetrySendsThemAgain) {
  std::atomic<int> calls = 0;
  server_.service.attend = [&](grpc::ServerContext& context, const auto& request, auto& response) {
    if (calls++ == 0) {
      context.AddTrailingMetadata("grpc-retry-pushback-ms", "1");
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "draining");
    }
    *response.mutable_output() = request.value();
    return grpc::Status::OK;
  };
  ExpectEchoed(server_.Connect().Attend(Request()));
  EXPECT_EQ(calls, 2);
  released_.WaitForNotification();
}

// What the transport still holds then, it lets go of later; not before it has read the last of it.
TEST_F(SharedTensorsTest, ACancelledCallLetsGo) {
  server_.service.attend = [this](auto&, const auto&, auto&) {
    arrived_.Notify();
    release_.WaitForNotification();
    return grpc::Status::OK;
  };
  std::stop_source stop;
  absl::Notification ended;
  server_.Connect().AttendAsync(Request(), {.cancel = stop.get_token()}, [&](auto result) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled);
    ended.Notify();
  });
  arrived_.WaitForNotification();
  stop.request_stop();
  ended.WaitForNotification();
  released_.WaitForNotification();
  release_.Notify();
}

TEST_F(SharedTensorsTest, ARefusedRequestLetsGo) {
  server_.service.info.mutable_limits()->set_max_message_bytes(100);
  EXPECT_EQ(server_.Connect().Attend(Request()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(released_.HasBeenNotified());
}

TEST_F(SharedTensorsTest, AnOwnerMayHoldTheLastClient) {
  absl::Notification ended;
  {
    const Client client = server_.Connect();
    client.AttendAsync(Request(client), {}, [&](const auto& result) {
      ExpectEchoed(result);
      ended.Notify();
    });
  }
  ended.WaitForNotification();
  released_.WaitForNotification();
}

}  // namespace
}  // namespace triad::client
