// Clients that send and do not read: what waits for them stays inside --max_in_flight_bytes, and goes when they do.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/await_true.h"
#include "tests/support/http2_call.h"
#include "tests/support/server_fixture.h"
#include "tests/support/server_raw_call.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

using ::testing::HasSubstr;

// 12 KiB, whose answer has 4 MiB of weights; it holds twice that.
v1::AttendRequest LargeAnswer() {
  v1::AttendRequest request =
      MakeRequest({.q_len = 1024, .kv_len = 1024, .heads = 1, .kv_heads = 1, .head_dim = 1}, /*seed=*/1);
  request.set_return_weights(true);
  return request;
}

std::string InFrame(const google::protobuf::Message& message) {
  const std::string bytes = message.SerializeAsString();
  return MessageHead(static_cast<uint32_t>(bytes.size())) + bytes;
}

class ServerSlowReaderTest : public ::testing::Test {
 protected:
  static ServerOptions Options() {
    ServerOptions options = TestServerOptions();
    options.listen = {"127.0.0.1:0"};
    options.max_message_bytes = 16 << 20;
    options.max_in_flight_bytes = 32 << 20;
    options.max_stream_items = 2;
    return options;
  }
  grpc::Status AttendLarge() {
    grpc::ClientContext context;
    v1::AttendResponse response;
    grpc::Status status = server_.NewStub()->Attend(&context, LargeAnswer(), &response);
    pushbacks_ = context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms");
    return status;
  }
  // A call whose client lets not a byte of reply through.
  Http2Call Deaf(const char* method) const {
    Http2Call call(server_.target(), /*reply_window=*/0);
    call.SendHeaders(method);
    return call;
  }

  TestServer server_{Options()};
  size_t pushbacks_ = 0;  // of the last AttendLarge
};

TEST_F(ServerSlowReaderTest, UnreadRepliesCountUntilTheyAreGone) {
  constexpr int kFit = 3;
  std::vector<Http2Call> calls;
  for (int i = 0; i < kFit; ++i) {
    calls.push_back(Deaf(kAttendMethod));
    calls.back().SendData(InFrame(LargeAnswer()), /*is_end=*/true);
  }
  AwaitTrue([&] { return server_.Metric(R"(triad_requests_total{code="OK",method="Attend"})") == kFit; });
  EXPECT_EQ(server_.server().in_flight_requests(), kFit) << "computed, and not read";
  const grpc::Status refused = AttendLarge();
  EXPECT_EQ(refused.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("--max_in_flight_bytes"));
  EXPECT_EQ(pushbacks_, 1u);
  EXPECT_TRUE(CallSmallAttend(server_.NewChannel()).ok()) << "for which there is room";

  for (Http2Call& call : calls) call.connection().Reset();
  AwaitTrue([&] { return server_.server().in_flight_requests() == 0; });
  EXPECT_EQ(server_.Metric("triad_in_flight_bytes"), 0);
  EXPECT_TRUE(AttendLarge().ok());
}

TEST_F(ServerSlowReaderTest, AStreamThatIsNotReadIsNotReadFrom) {
  v1::AttendStreamRequest frame;
  *frame.mutable_request() = OneItemRequest();
  std::string frames;
  for (uint64_t id = 0; id < 100; ++id) {
    frame.set_request_id(id);
    frames += InFrame(frame);
  }
  Http2Call call = Deaf(kAttendStreamMethod);
  call.SendData(frames);
  AwaitTrue([&] { return server_.server().in_flight_requests() == Options().max_stream_items; });
  EXPECT_TRUE(CallSmallAttend(server_.NewChannel()).ok());
  AwaitTrue([&] { return server_.server().in_flight_requests() == Options().max_stream_items; });
  EXPECT_EQ(server_.Metric(R"(triad_requests_total{code="OK",method="AttendStream"})"), Options().max_stream_items);

  call.connection().Reset();
  AwaitTrue([&] { return server_.server().in_flight_requests() == 0; });
  AwaitTrue([&] { return server_.Metric("triad_open_streams") == 0; });
  EXPECT_EQ(server_.Metric("triad_in_flight_bytes"), 0);
  EXPECT_TRUE(AttendLarge().ok());
}

}  // namespace
}  // namespace triad
