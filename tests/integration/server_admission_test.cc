// Who is let in beside others, and who leaves: the share of one client's address, the time until a deadline, clients
// that do not wait.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/layer_source.h"
#include "tests/support/await_true.h"
#include "tests/support/server_fixture.h"
#include "tests/support/server_gate_kernel.h"
#include "tests/support/server_layers.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr ForwardShape kDemoShape = {.tokens = 1, .dim = 512};

struct Outcome {
  int code = 0;
  std::string message;
  bool has_pushback = false;
};

Outcome UnaryOutcome(const grpc::Status& status, const grpc::ClientContext& context) {
  return {status.error_code(), status.error_message(),
          context.GetServerTrailingMetadata().count("grpc-retry-pushback-ms") == 1};
}

// One item, and its reply; or the end of the stream when there is none.
template <class Reply, class Stream, class Frame>
Outcome StreamOutcome(Stream stream, const Frame& frame) {
  Reply reply;
  stream->Write(frame);
  stream->WritesDone();
  const bool has_reply = stream->Read(&reply);
  const grpc::Status end = stream->Finish();
  if (!has_reply) return {.code = end.error_code(), .message = end.error_message()};
  return {reply.error().code(), reply.error().message(), reply.error().has_retry_delay()};
}

using Call = Outcome (*)(v1::AttentionService::Stub&, grpc::ClientContext&);

Outcome Attend(v1::AttentionService::Stub& stub, grpc::ClientContext& context) {
  v1::AttendResponse response;
  return UnaryOutcome(stub.Attend(&context, OneItemRequest(), &response), context);
}

Outcome Forward(v1::AttentionService::Stub& stub, grpc::ClientContext& context) {
  v1::ForwardResponse response;
  return UnaryOutcome(stub.Forward(&context, MakeForwardRequest(kDemoLayerName, /*seed=*/1, kDemoShape), &response),
                      context);
}

Outcome AttendStream(v1::AttentionService::Stub& stub, grpc::ClientContext& context) {
  v1::AttendStreamRequest frame;
  *frame.mutable_request() = OneItemRequest();
  return StreamOutcome<v1::AttendStreamResponse>(stub.AttendStream(&context), frame);
}

Outcome ForwardStream(v1::AttentionService::Stub& stub, grpc::ClientContext& context) {
  v1::ForwardStreamRequest frame;
  *frame.mutable_request() = MakeForwardRequest(kDemoLayerName, /*seed=*/1, kDemoShape);
  return StreamOutcome<v1::ForwardStreamResponse>(stub.ForwardStream(&context), frame);
}

// A call in the background.
class Background {
 public:
  Background(std::unique_ptr<v1::AttentionService::Stub> stub, Call call)
      : stub_(std::move(stub)), thread_([this, call] { outcome_ = call(*stub_, context_); }) {}
  ~Background() {
    if (thread_.joinable()) thread_.join();
  }
  Outcome Wait() {
    thread_.join();
    return outcome_;
  }
  void Cancel() { context_.TryCancel(); }

 private:
  std::unique_ptr<v1::AttentionService::Stub> stub_;
  grpc::ClientContext context_;
  Outcome outcome_;
  std::thread thread_;  // last: uses all of the above
};

// One compute thread behind a gate; listens on a Unix socket and on loopback.
class ServerAdmissionTest : public ::testing::TestWithParam<Call> {
 protected:
  void Start(ServerOptions options) {
    options.listen = {absl::StrCat("unix:", (folder_.path() / "server.sock").string()), "127.0.0.1:0"};
    options.threads = 1;
    options.max_inline_flop = 0;
    options.demo_layer = true;
    server_.emplace(options, MakeGateKernel(gate_));
  }
  ~ServerAdmissionTest() override { gate_->Open(); }

  std::unique_ptr<v1::AttentionService::Stub> UnixStub() { return server_->NewStub(); }
  std::unique_ptr<v1::AttentionService::Stub> LoopbackStub() {
    return v1::AttentionService::NewStub(
        grpc::CreateChannel(server_->server().addresses()[1], grpc::InsecureChannelCredentials()));
  }
  // A request of a Unix client that is being computed.
  std::unique_ptr<Background> Occupy() {
    gate_->Close();
    auto running = std::make_unique<Background>(UnixStub(), Attend);
    gate_->AwaitArrivals(1);
    return running;
  }

  const TemporaryFolder folder_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::optional<TestServer> server_;
};

TEST_P(ServerAdmissionTest, APeerPastItsRequestsIsRefusedAndOthersAreNot) {
  ServerOptions options = TestServerOptions();
  options.max_peer_in_flight_requests = 1;
  Start(options);
  const auto running = Occupy();
  grpc::ClientContext context;
  const Outcome refused = GetParam()(*UnixStub(), context);
  EXPECT_EQ(refused.code, grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.message, HasSubstr("--max_peer_in_flight_requests is 1"));
  EXPECT_TRUE(refused.has_pushback);
  EXPECT_EQ(server_->Metric(R"(triad_refusals_total{reason="peer"})"), 1);
  Background other(LoopbackStub(), GetParam());
  while (server_->Metric("triad_in_flight_peers") < 2) std::this_thread::yield();
  gate_->Open();
  EXPECT_EQ(other.Wait().code, 0);
  EXPECT_EQ(running->Wait().code, 0);
  while (server_->server().in_flight_requests() > 0) std::this_thread::yield();
  EXPECT_EQ(server_->Metric("triad_in_flight_peers"), 0) << "who has nothing here is forgotten";
}

TEST_P(ServerAdmissionTest, APeerPastItsBytesIsRefusedButNeverItsOnlyRequest) {
  ServerOptions options = TestServerOptions();
  options.max_peer_in_flight_bytes = 1;
  Start(options);
  const auto running = Occupy();
  grpc::ClientContext context;
  const Outcome refused = GetParam()(*UnixStub(), context);
  EXPECT_EQ(refused.code, grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.message, HasSubstr("--max_peer_in_flight_bytes = 1"));
  EXPECT_TRUE(refused.has_pushback);
  gate_->Open();
  EXPECT_EQ(running->Wait().code, 0);
}

TEST_P(ServerAdmissionTest, AClientThatLeavesWhileItWaitsIsDroppedBeforeItIsComputedAndCounted) {
  Start(TestServerOptions());
  const auto running = Occupy();
  Background waiting(UnixStub(), GetParam());
  AwaitTrue([&] { return server_->server().in_flight_requests() == 2; });
  waiting.Cancel();
  EXPECT_EQ(waiting.Wait().code, grpc::CANCELLED);
  // While the gate is closed.
  AwaitTrue([&] { return server_->Metric(R"(triad_refusals_total{reason="cancelled"})") == 1; });
  AwaitTrue([&] { return server_->server().in_flight_requests() == 1; });
  gate_->Open();
  EXPECT_EQ(running->Wait().code, 0);
  EXPECT_EQ(server_->Metric("triad_compute_seconds_count"), 1);
}

TEST_P(ServerAdmissionTest, CompressedMessagesAreNotTakenIn) {
  Start(TestServerOptions());
  for (grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext compressed;
    compressed.set_compression_algorithm(algorithm);
    const Outcome refused = GetParam()(*UnixStub(), compressed);
    EXPECT_EQ(refused.code, grpc::UNIMPLEMENTED) << refused.message;
    EXPECT_THAT(refused.message, HasSubstr("ompress"));
    grpc::ClientContext plain;
    EXPECT_EQ(GetParam()(*UnixStub(), plain).code, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryWayIn, ServerAdmissionTest,
                         ::testing::Values(Attend, AttendStream, Forward, ForwardStream));

// The server has shown its pace: some hundred flop in an item that took a thread's wake-up or longer.
class ServerDeadlineTest : public ServerAdmissionTest {
 protected:
  void SetUp() override {
    Start(TestServerOptions());
    const auto measured = Occupy();
    gate_->Open();
    ASSERT_EQ(measured->Wait().code, 0);
  }

  static Outcome AttendLarge(v1::AttentionService::Stub& stub, grpc::ClientContext& context) {
    v1::AttendResponse response;
    const v1::AttendRequest request =
        MakeRequest({.q_len = 2048, .kv_len = 2048, .heads = 8, .kv_heads = 8, .head_dim = 64}, /*seed=*/1);
    return UnaryOutcome(stub.Attend(&context, request, &response), context);
  }
};

TEST_F(ServerDeadlineTest, WhatWouldBeLateBehindOthersIsRefusedAtOnceWithPushback) {
  const auto running = Occupy();
  Background large(UnixStub(), AttendLarge);  // 9 GFLOP wait
  while (server_->Metric("triad_listed_requests") < 2) std::this_thread::yield();
  v1::AttendRequest request = OneItemRequest();
  request.set_priority(v1::LOW);  // all of it goes before
  v1::AttendResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + seconds(20));
  const Outcome refused = UnaryOutcome(UnixStub()->Attend(&context, request, &response), context);
  EXPECT_EQ(refused.code, grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.message, HasSubstr("would be answered in about "));
  EXPECT_TRUE(refused.has_pushback);
  EXPECT_EQ(server_->Metric(R"(triad_refusals_total{reason="would_be_late"})"), 1);
  large.Cancel();
  while (server_->Metric("triad_listed_requests") > 1) std::this_thread::yield();
  gate_->Open();
  EXPECT_EQ(running->Wait().code, 0);
}

TEST_F(ServerDeadlineTest, WhatAnIdleServerCouldNotDoInTimeIsNotAskedToComeBack) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + seconds(5));
  const Outcome refused = AttendLarge(*UnixStub(), context);
  EXPECT_EQ(refused.code, grpc::DEADLINE_EXCEEDED);
  EXPECT_THAT(refused.message, HasSubstr("an idle server would need at least "));
  EXPECT_FALSE(refused.has_pushback);
}

}  // namespace
}  // namespace triad
