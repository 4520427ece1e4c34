// Connections that begin something and do not go on: whatever was left half said, the next good request is answered.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/await_true.h"
#include "tests/support/http2_call.h"
#include "tests/support/raw_connection.h"
#include "tests/support/server_fixture.h"
#include "tests/support/server_raw_call.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

constexpr int kConnections = 50;

ServerOptions TcpOptions() {
  ServerOptions options = TestServerOptions();
  options.listen = {"127.0.0.1:0"};
  return options;
}

class ServerHalfOpenTest : public ::testing::Test {
 protected:
  void TearDown() override {
    const grpc::Status status = CallSmallAttend(server_.NewChannel());
    EXPECT_TRUE(status.ok()) << status.error_message();
    AwaitTrue([&] { return server_.server().in_flight_requests() == 0; });
  }

  // `count` connections that say `bytes` and then nothing.
  std::vector<RawConnection> Say(const std::string& address, const std::string& bytes, int count = kConnections) const {
    std::vector<RawConnection> connections;
    for (int i = 0; i < count; ++i) {
      connections.emplace_back(address);
      connections.back().Send(bytes);
    }
    return connections;
  }
  void ExpectServes() const {
    const grpc::Status status = CallSmallAttend(server_.NewChannel());
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(server_.Page("/healthz").first, 200);
  }

  TestServer server_{TcpOptions()};
};

TEST_F(ServerHalfOpenTest, ConnectionsThatSayNothing) {
  const auto connections = Say(server_.target(), "");
  ExpectServes();
}

TEST_F(ServerHalfOpenTest, HalfAPreface) {
  const auto connections = Say(server_.target(), std::string(kHttp2Preface.substr(0, 7)));
  ExpectServes();
}

TEST_F(ServerHalfOpenTest, APrefaceAndNoCall) {
  const auto connections = Say(server_.target(), std::string(kHttp2Preface));
  const std::string settings = ToBytes({.type = Http2Type::kSettings});
  const auto with_settings = Say(server_.target(), absl::StrCat(kHttp2Preface, settings));
  ExpectServes();
}

TEST_F(ServerHalfOpenTest, BytesThatAreNoHttp2AreHungUpOn) {
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\nHost: test\r\n\r\n"), std::string(1000, '\0'),
                                   std::string("\x16\x03\x01\x02\x00\x01", 6) + std::string(600, 'x')}) {
    const RawConnection connection(server_.target());
    connection.Send(bytes);
    connection.ReceiveAll();  // until it is closed
    ExpectServes();
  }
}

// Every method that takes tensors.
class ServerHalfCallTest : public ServerHalfOpenTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ServerHalfCallTest, HeadersAndNoMessage) {
  std::vector<Http2Call> calls;
  for (int i = 0; i < kConnections; ++i) calls.emplace_back(server_.target()).SendHeaders(GetParam());
  ExpectServes();
  for (Http2Call& call : calls) call.connection().Reset();
}

// No half of a message is looked at, so that it does not matter whose message it is.
TEST_P(ServerHalfCallTest, HalfAMessage) {
  const std::string message = MakeRequest({.q_len = 64, .kv_len = 64}, /*seed=*/1).SerializeAsString();
  const std::string half = MessageHead(static_cast<uint32_t>(message.size())) + message.substr(0, message.size() / 2);
  std::vector<Http2Call> calls;
  for (int i = 0; i < kConnections; ++i) {
    calls.emplace_back(server_.target()).SendHeaders(GetParam());
    EXPECT_EQ(calls.back().SendData(half), half.size());
  }
  EXPECT_EQ(server_.server().in_flight_requests(), 0) << "what has not been read whole is not accepted";
  ExpectServes();
  for (Http2Call& call : calls) call.connection().Reset();
}

TEST_P(ServerHalfCallTest, AMessageThatIsCutShortEndsItsCall) {
  const std::string message = OneItemRequest().SerializeAsString();
  for (const std::string& data : {MessageHead(static_cast<uint32_t>(message.size()) + 1) + message,
                                  MessageHead(5).substr(0, 3), MessageHead(0xffffffff) + message, "\x07" + message}) {
    Http2Call call(server_.target());
    call.SendHeaders(GetParam());
    call.SendData(data, /*is_end=*/true);
    call.AwaitEnd();
    ExpectServes();
  }
}

INSTANTIATE_TEST_SUITE_P(EveryMethod, ServerHalfCallTest,
                         ::testing::Values(kAttendMethod, kAttendStreamMethod, kForwardMethod, kForwardStreamMethod),
                         [](const auto& method) { return std::string(std::strrchr(method.param, '/') + 1); });

TEST_F(ServerHalfOpenTest, AWholeCallInPlainBytesIsAnswered) {
  const std::string message = OneItemRequest().SerializeAsString();
  Http2Call call(server_.target());
  call.SendHeaders(kAttendMethod);
  call.SendData(MessageHead(static_cast<uint32_t>(message.size())) + message, /*is_end=*/true);
  call.AwaitEnd();
  EXPECT_EQ(server_.Metric(R"(triad_requests_total{code="OK",method="Attend"})"), 1);
}

TEST_F(ServerHalfOpenTest, PagesThatAreNeverAskedToTheEnd) {
  // More than the pages have threads (http_pages.cc).
  const auto connections = Say(server_.server().http_address(), "GET /metrics HTTP/1.1\r\nX-Slow: ", /*count=*/24);
  ExpectServes();
}

TEST_F(ServerHalfOpenTest, APageWhoseHeadersHaveNoEndIsRefused) {
  const RawConnection connection(server_.server().http_address());
  connection.Send(absl::StrCat("GET /metrics HTTP/1.1\r\nX-Long: ", std::string(1 << 20, 'x')));
  EXPECT_EQ(connection.ReceiveAll().find(" 200 "), std::string::npos);
  ExpectServes();
}

}  // namespace
}  // namespace triad
