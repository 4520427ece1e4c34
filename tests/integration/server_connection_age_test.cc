// Connections that come of age: what their clients notice.
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "tests/support/server_fixture.h"
#include "tests/support/server_gate_kernel.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

constexpr auto kNeverLater = std::chrono::system_clock::time_point::max();

ServerOptions ShortLived() {
  ServerOptions options = TestServerOptions();
  options.max_connection_age = absl::Milliseconds(20);
  return options;
}

// Returns when the connection that `channel` has, or gets, takes no more calls.
void AwaitEndOfConnection(grpc::Channel& channel) {
  channel.WaitForConnected(kNeverLater);
  channel.WaitForStateChange(GRPC_CHANNEL_READY, kNeverLater);
}

TEST(ServerConnectionAgeTest, ClientsReconnectWithoutAnError) {
  TestServer server(ShortLived());
  const auto channel = server.NewChannel();
  std::atomic<bool> has_reconnected{false};
  std::thread watcher([&] {
    for (int i = 0; i < 5; ++i) AwaitEndOfConnection(*channel);
    channel->WaitForConnected(kNeverLater);
    has_reconnected = true;
  });
  const auto stub = v1::AttentionService::NewStub(channel);
  do {
    grpc::ClientContext context;
    v1::AttendResponse response;
    const grpc::Status status = stub->Attend(&context, OneItemRequest(), &response);
    EXPECT_TRUE(status.ok()) << status.error_code() << ": " << status.error_message();
  } while (!has_reconnected);
  watcher.join();
}

TEST(ServerConnectionAgeTest, ACallInProgressGoesOn) {
  const auto gate = std::make_shared<Gate>();
  TestServer server(ShortLived(), MakeGateKernel(gate));
  gate->Close();
  const auto channel = server.NewChannel();
  grpc::Status status;
  std::thread client([&] {
    grpc::ClientContext context;
    v1::AttendResponse response;
    status = v1::AttentionService::NewStub(channel)->Attend(&context, OneItemRequest(), &response);
  });
  gate->AwaitArrivals(1);
  // The call's own, or one that came after it; and more, so that a grace that is none would be over.
  for (int i = 0; i < 3; ++i) AwaitEndOfConnection(*channel);
  gate->Open();
  client.join();
  EXPECT_TRUE(status.ok()) << status.error_code() << ": " << status.error_message();
}

TEST(ServerConnectionAgeTest, AStreamEndsWithTheGrace) {
  ServerOptions options = ShortLived();
  options.max_connection_age_grace = absl::Milliseconds(20);
  TestServer server(options);
  const auto stub = server.NewStub();
  grpc::ClientContext context;
  const auto stream = stub->AttendStream(&context);
  v1::AttendStreamResponse reply;
  EXPECT_FALSE(stream->Read(&reply));
  EXPECT_EQ(stream->Finish().error_code(), grpc::UNAVAILABLE);
}

}  // namespace
}  // namespace triad
