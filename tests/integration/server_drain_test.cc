// The end of a server, and its addresses.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/server_fixture.h"
#include "tests/support/server_gate_kernel.h"
#include "tests/support/server_layers.h"
#include "tests/support/server_raw_call.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ServerDrainTest, AnswersEverythingAcceptedAndRefusesTheRest) {
  const auto gate = std::make_shared<Gate>();
  ServerOptions options = TestServerOptions();
  options.threads = 1;
  options.max_inline_flop = 0;
  TestServer server(options, MakeGateKernel(gate));
  gate->Close();
  constexpr int kAccepted = 8;
  std::vector<grpc::StatusCode> codes(kAccepted, grpc::UNKNOWN);
  std::vector<std::thread> clients;
  for (int i = 0; i < kAccepted; ++i) {
    clients.emplace_back([&, i] {
      grpc::ClientContext context;
      v1::AttendResponse response;
      codes[static_cast<size_t>(i)] = server.NewStub()->Attend(&context, OneItemRequest(), &response).error_code();
    });
  }
  while (server.server().in_flight_requests() < kAccepted) std::this_thread::yield();
  auto stub = server.NewStub();
  server.server().BeginDrain();
  grpc::ClientContext context;
  v1::AttendResponse response;
  const grpc::Status refused = stub->Attend(&context, OneItemRequest(), &response);
  EXPECT_EQ(refused.error_code(), grpc::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("draining"));
  std::thread drain([&] { EXPECT_TRUE(server.server().Drain()); });
  gate->Open();
  drain.join();
  for (std::thread& client : clients) client.join();
  EXPECT_THAT(codes, ::testing::Each(grpc::OK));
}

TEST(ServerDrainTest, IdleStreamsAndHealthWatchesDoNotHoldItUp) {
  ServerOptions options = TestServerOptions();
  options.drain_timeout = absl::Minutes(10);  // the test's own time limit is far below
  TestServer server(options);
  RawCall stream(server.NewChannel(), kAttendStreamMethod);
  RawCall watch(server.NewChannel(), "/grpc.health.v1.Health/Watch");
  watch.Write("");
  watch.WritesDone();
  EXPECT_EQ(watch.Read(), std::string("\x08\x01", 2));  // SERVING
  EXPECT_TRUE(server.server().Drain());
  EXPECT_EQ(watch.Read(), std::string("\x08\x02", 2));  // NOT_SERVING
  EXPECT_EQ(stream.Finish().error_code(), grpc::UNAVAILABLE);
}

// A request of two items, of which one is at the gate, and a request that waits for it, when drain_timeout passes.
class ForcedDrainTest : public ::testing::Test {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::AttendStreamRequest, v1::AttendStreamResponse>;

  static v1::AttendRequest TwoItems() { return MakeRequest({.q_len = 2, .heads = 1, .kv_heads = 1}, /*seed=*/1); }
  static ServerOptions Options() {
    ServerOptions options = TestServerOptions();
    options.threads = 1;
    options.max_inline_flop = 0;
    options.drain_timeout = absl::Milliseconds(20);
    return options;
  }
  void SetUp() override { gate_->Close(); }
  void StartCall() {
    client_ = std::thread([this] {
      grpc::ClientContext context;
      v1::AttendResponse response;
      call_end_ = server_.NewStub()->Attend(&context, TwoItems(), &response);
    });
  }
  void StartStream() {
    v1::AttendStreamRequest frame;
    frame.set_request_id(1);
    *frame.mutable_request() = TwoItems();
    ASSERT_TRUE(stream_->Write(frame));
  }
  void AwaitBoth() {
    while (server_.server().in_flight_requests() < 2) std::this_thread::yield();
  }
  void ExpectItemUnavailable() {
    v1::AttendStreamResponse reply;
    EXPECT_TRUE(stream_->Read(&reply)) << "the stream has ended";
    EXPECT_EQ(reply.error().code(), grpc::UNAVAILABLE) << reply.ShortDebugString();
    EXPECT_THAT(reply.error().message(), HasSubstr("the server is draining"));
  }
  void ExpectStreamEndsUnavailable() {
    v1::AttendStreamResponse reply;
    EXPECT_FALSE(stream_->Read(&reply));
    EXPECT_EQ(stream_->Finish().error_code(), grpc::UNAVAILABLE);
  }
  void ExpectCallUnavailable() {
    client_.join();
    EXPECT_EQ(call_end_.error_code(), grpc::UNAVAILABLE) << call_end_.error_message();
    EXPECT_THAT(call_end_.error_message(), HasSubstr("the server is draining"));
  }

  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  TestServer server_{Options(), MakeGateKernel(gate_)};
  grpc::ClientContext context_;
  const std::unique_ptr<v1::AttentionService::Stub> stub_ = server_.NewStub();
  const std::unique_ptr<Stream> stream_ = stub_->AttendStream(&context_);
  grpc::Status call_end_;
  std::thread client_;
};

// Whoever waits is answered at once. By then what runs is to end as well, whenever the gate lets it.
TEST_F(ForcedDrainTest, TellsARunningCallAndAWaitingItemUnavailable) {
  StartCall();
  gate_->AwaitArrivals(1);
  StartStream();
  AwaitBoth();
  std::thread drain([&] { EXPECT_FALSE(server_.server().Drain()); });
  ExpectItemUnavailable();
  gate_->Open();
  drain.join();
  ExpectCallUnavailable();
  ExpectStreamEndsUnavailable();
}

TEST_F(ForcedDrainTest, TellsARunningItemAndAWaitingCallUnavailable) {
  StartStream();
  gate_->AwaitArrivals(1);
  StartCall();
  AwaitBoth();
  std::thread drain([&] { EXPECT_FALSE(server_.server().Drain()); });
  ExpectCallUnavailable();
  gate_->Open();
  drain.join();
  ExpectItemUnavailable();
  ExpectStreamEndsUnavailable();
}

// The gate holds up the layer's warm-up.
TEST(ServerDrainTest, ALoadCannotHoldItUpPastTheTimeout) {
  const TemporaryFolder directory;
  const auto gate = std::make_shared<Gate>();
  ServerOptions options = LayerServerOptions(directory.path());
  options.drain_timeout = absl::Milliseconds(20);
  TestServer server(options, MakeGateKernel(gate));
  WriteSmallLayer(directory.path(), "a", 1, 1);
  gate->Close();
  grpc::Status end;
  std::thread client([&] {
    v1::LoadLayerRequest request;
    request.set_name("a");
    grpc::ClientContext context;
    v1::LoadLayerResponse response;
    end = server.NewLayerStub()->LoadLayer(&context, request, &response);
  });
  gate->AwaitArrivals(1);
  EXPECT_FALSE(server.server().Drain()) << "while the gate is closed";
  client.join();
  EXPECT_EQ(end.error_code(), grpc::UNAVAILABLE);
  EXPECT_THAT(end.error_message(), HasSubstr("the server is draining"));
  EXPECT_FALSE(std::filesystem::exists(server.target().substr(5))) << "a process may end here";
  gate->Open();
}

TEST(ServerAddressTest, ListensOnSeveralAddressesAndSaysWhichPort) {
  ServerOptions options = TestServerOptions();
  options.listen = {"127.0.0.1:0", "localhost:0"};
  TestServer server(options);
  ASSERT_EQ(server.server().addresses().size(), 2u);
  EXPECT_THAT(server.target(), StartsWith("127.0.0.1:"));
  EXPECT_NE(server.target(), "127.0.0.1:0");
  grpc::ClientContext context;
  v1::AttendResponse response;
  EXPECT_TRUE(server.NewStub()->Attend(&context, OneItemRequest(), &response).ok());
}

TEST(ServerAddressTest, SaysWhyItCannotListen) {
  ServerOptions options = TestServerOptions();
  options.listen = {"127.0.0.1:0"};
  TestServer first(options);
  const std::string taken = first.target();
  Log log(LogFormat::kText, stderr);
  for (const auto& [address, reason] : {std::pair<std::string, std::string>{taken, "Address already in use"},
                                        {"unix:/no folder/x", "No such file or directory"},
                                        {"192.0.2.1:0", "Cannot assign requested address"}}) {
    options.listen = {address};
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(Server::Start(options, log).status().message(),
              "--listen=" + address + ": cannot listen there: " + reason);
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "gRPC must not say so in lines of its own";
  }
}

TEST(ServerAddressTest, RemovesItsSocketAndASocketLeftBehindButNothingElse) {
  TestServer first;
  const std::string path = first.target().substr(5);
  EXPECT_TRUE(std::filesystem::is_socket(path));

  Log log(LogFormat::kText, stderr);
  ServerOptions options = TestServerOptions();
  options.listen = {first.target()};
  EXPECT_THAT(std::string(Server::Start(options, log).status().message()), HasSubstr("another server listens"));
  EXPECT_TRUE(std::filesystem::is_socket(path)) << "the living server's socket must stay";

  first.Stop();
  EXPECT_FALSE(std::filesystem::exists(path));
  std::ofstream(path) << "a file";
  EXPECT_THAT(std::string(Server::Start(options, log).status().message()), HasSubstr("not a socket"));
  EXPECT_TRUE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace triad
