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

TEST(ServerDrainTest, CancelsWhatIsLeftAtTheTimeout) {
  const auto gate = std::make_shared<Gate>();
  ServerOptions options = TestServerOptions();
  options.threads = 1;
  options.max_inline_flop = 0;
  options.drain_timeout = absl::Milliseconds(20);
  TestServer server(options, MakeGateKernel(gate));
  gate->Close();
  grpc::StatusCode code = grpc::OK;
  std::thread client([&] {
    grpc::ClientContext context;
    v1::AttendResponse response;
    // Two items: it ends between them.
    code = server.NewStub()
               ->Attend(&context, MakeRequest({.q_len = 2, .heads = 1, .kv_heads = 1}, 1), &response)
               .error_code();
    gate->Open();
  });
  gate->AwaitArrivals(1);
  EXPECT_FALSE(server.server().Drain());
  client.join();
  EXPECT_NE(code, grpc::OK);
}

// The gate holds up the layer's warm-up.
TEST(ServerDrainTest, ALoadCannotHoldItUpPastTheTimeout) {
  const TemporaryFolder directory;
  const auto gate = std::make_shared<Gate>();
  ServerOptions options = TestServerOptions();
  options.layer_dir = directory.path().string();
  options.allow_layer_admin = true;
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

TEST(ServerAddressTest, RefusesAPortThatIsTaken) {
  ServerOptions options = TestServerOptions();
  options.listen = {"127.0.0.1:0"};
  TestServer first(options);
  Log log(LogFormat::kText, stderr);
  options.listen = {first.target()};
  const auto second = Server::Start(options, log);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(first.target()));
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
