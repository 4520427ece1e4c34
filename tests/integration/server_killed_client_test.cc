// Real client processes that are killed in the middle of their requests.
#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/await_true.h"
#include "tests/support/child_process.h"
#include "tests/support/http2_call.h"
#include "tests/support/server_fixture.h"
#include "tests/support/server_gate_kernel.h"
#include "tests/support/server_raw_call.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

constexpr int kInFlight = 8;

class ServerKilledClientTest : public ::testing::Test {
 protected:
  static ServerOptions Options() {
    ServerOptions options = TestServerOptions();
    options.listen = {"127.0.0.1:0"};
    options.threads = 1;
    options.max_inline_flop = 0;
    return options;
  }
  void TearDown() override { gate_->Open(); }

  int64_t InFlight() { return server_.server().in_flight_requests(); }

  // Kills a client that has kInFlight requests here, one of them being computed, and looks what becomes of them.
  void KillAndExpectNothingLeft(const std::vector<std::string>& flags) {
    gate_->Close();
    std::vector<std::string> arguments = {TRIAD_TOOL_BINARY,
                                          "bench",
                                          absl::StrCat("--target=", server_.target()),
                                          absl::StrCat("--concurrency=", kInFlight),
                                          "--tokens=4",
                                          "--heads=2",
                                          "--duration=1m"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    ChildProcess client(arguments);
    gate_->AwaitArrivals(1);
    AwaitTrue([&] { return InFlight() == kInFlight; });
    EXPECT_EQ(client.End(SIGKILL), -1);
    AwaitTrue([&] { return InFlight() == 1; });  // while the gate is closed: queued ones are dropped
    gate_->Open();
    AwaitTrue([&] { return InFlight() == 0; });
    EXPECT_EQ(server_.Metric("triad_in_flight_bytes"), 0);
    EXPECT_EQ(server_.Metric("triad_open_streams"), 0);
    EXPECT_TRUE(CallSmallAttend(server_.NewChannel()).ok());
  }

  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  TestServer server_{Options(), MakeGateKernel(gate_)};
};

TEST_F(ServerKilledClientTest, ItsUnaryCallsLeaveNothing) { KillAndExpectNothingLeft({}); }

TEST_F(ServerKilledClientTest, ItsStreamsLeaveNothing) { KillAndExpectNothingLeft({"--stream"}); }

// The same at a point that no real client stops at for long: what the kernel sends for a killed one is a reset.
TEST_F(ServerKilledClientTest, AMessageThatBreaksOffLeavesNothing) {
  const std::string message = MakeRequest({.q_len = 64, .kv_len = 64}, /*seed=*/1).SerializeAsString();
  for (size_t cut = 0; cut < message.size(); cut += 997) {
    Http2Call call(server_.target());
    call.SendHeaders(kAttendMethod);
    call.SendData(MessageHead(static_cast<uint32_t>(message.size())) + message.substr(0, cut));
    call.connection().Reset();
  }
  EXPECT_TRUE(CallSmallAttend(server_.NewChannel()).ok());
  AwaitTrue([&] { return InFlight() == 0; });
  EXPECT_EQ(server_.Metric("triad_in_flight_bytes"), 0);
}

}  // namespace
}  // namespace triad
