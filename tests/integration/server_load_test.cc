// Many requests at once: bounds, deadlines, cancellation, and answers that do not depend on company.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/await_true.h"
#include "tests/support/server_fixture.h"
#include "tests/support/server_gate_kernel.h"
#include "tests/support/server_raw_call.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

using ::testing::HasSubstr;

// One compute thread behind a gate, so that a test decides what runs and what waits.
ServerOptions GateOptions() {
  ServerOptions options = TestServerOptions();
  options.threads = 1;
  options.max_inline_flop = 0;
  return options;
}

// An Attend in the background.
class AsyncAttend {
 public:
  AsyncAttend(TestServer& server, const v1::AttendRequest& request,
              std::function<void(grpc::ClientContext&)> prepare = {})
      : stub_(server.NewStub()) {
    if (prepare) prepare(context_);
    thread_ = std::thread([this, request] { status_ = stub_->Attend(&context_, request, &response_); });
  }
  ~AsyncAttend() {
    if (thread_.joinable()) thread_.join();
  }
  grpc::Status Wait() {
    thread_.join();
    return status_;
  }
  const v1::AttendResponse& response() const { return response_; }
  grpc::ClientContext& context() { return context_; }

 private:
  std::unique_ptr<v1::AttentionService::Stub> stub_;
  grpc::ClientContext context_;
  v1::AttendResponse response_;
  grpc::Status status_;
  std::thread thread_;  // last: uses all of the above
};

TEST(ServerLoadTest, BytesAreThoseOfTheSameRequestAlone) {
  TestServer server;
  std::vector<v1::AttendRequest> requests;
  std::vector<std::string> alone;
  auto stub = server.NewStub();
  for (int64_t i = 0; i < 12; ++i) {
    requests.push_back(
        MakeRequest({.batch = 1 + i % 3, .q_len = 1 + 37 * i, .kv_len = 1 + 29 * i, .head_dim = 32}, /*seed=*/i));
    grpc::ClientContext context;
    v1::AttendResponse response;
    ASSERT_TRUE(stub->Attend(&context, requests.back(), &response).ok());
    alone.push_back(response.output().data());
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([&, client] {
      auto own_stub = server.NewStub();
      for (size_t i = 0; i < 3 * requests.size(); ++i) {
        const size_t which = (i + static_cast<size_t>(client) * 5) % requests.size();
        grpc::ClientContext context;
        v1::AttendResponse response;
        const bool ok = own_stub->Attend(&context, requests[which], &response).ok();
        if (!ok || response.output().data() != alone[which]) ++wrong;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(server.Metric(R"(triad_requests_total{code="OK",method="Attend"})"), 12 + 8 * 36);
}

TEST(ServerLoadTest, RefusesPastTheBoundWithPushback) {
  const auto gate = std::make_shared<Gate>();
  ServerOptions options = GateOptions();
  options.max_in_flight_requests = 1;
  TestServer server(options, MakeGateKernel(gate));
  gate->Close();
  AsyncAttend running(server, OneItemRequest());
  gate->AwaitArrivals(1);
  AsyncAttend refused(server, OneItemRequest());
  EXPECT_EQ(refused.Wait().error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.context().GetServerTrailingMetadata().count("grpc-retry-pushback-ms"), 1u);
  EXPECT_EQ(server.Metric(R"(triad_refusals_total{reason="requests"})"), 1);
  gate->Open();
  EXPECT_TRUE(running.Wait().ok());
}

TEST(ServerLoadTest, BoundsBytesInFlight) {
  const auto gate = std::make_shared<Gate>();
  ServerOptions options = GateOptions();
  options.max_message_bytes = 4096;
  options.max_in_flight_bytes = 4096;
  options.max_reference_work = 1 << 30;
  TestServer server(options, MakeGateKernel(gate));
  const v1::AttendRequest half = MakeRequest({.q_len = 1, .kv_len = 30, .heads = 1, .kv_heads = 1}, 1);
  gate->Close();
  AsyncAttend first(server, half);
  gate->AwaitArrivals(1);
  EXPECT_GT(server.Metric("triad_in_flight_bytes"), 1900);
  AsyncAttend second(server, MakeRequest({.q_len = 1, .kv_len = 40, .heads = 1, .kv_heads = 1}, 1));
  const grpc::Status status = second.Wait();
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("--max_in_flight_bytes"));
  gate->Open();
  EXPECT_TRUE(first.Wait().ok());
  AwaitTrue([&] { return server.server().in_flight_requests() == 0; });
  EXPECT_EQ(server.Metric("triad_in_flight_bytes"), 0);
}

TEST(ServerLoadTest, AnswersADeadlineThatPassesInTheQueueAtOnce) {
  const auto gate = std::make_shared<Gate>();
  TestServer server(GateOptions(), MakeGateKernel(gate));
  gate->Close();
  AsyncAttend running(server, OneItemRequest());
  gate->AwaitArrivals(1);
  // The server sees it by itself, while the gate is still closed. A deadline that passes before the call arrives is not
  // the server's to see: the next call has twice the time.
  auto patience = std::chrono::milliseconds(20);
  do {
    AsyncAttend queued(server, OneItemRequest(), [&](grpc::ClientContext& context) {
      context.set_deadline(std::chrono::system_clock::now() + patience);
    });
    EXPECT_EQ(queued.Wait().error_code(), grpc::DEADLINE_EXCEEDED);
    patience *= 2;
  } while (server.Metric(R"(triad_requests_total{code="DEADLINE_EXCEEDED",method="Attend"})") == 0);
  gate->Open();
  EXPECT_TRUE(running.Wait().ok());
}

TEST(ServerLoadTest, RefusesADeadlineThatHasPassed) {
  TestServer server;
  AsyncAttend late(server, OneItemRequest(), [](grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() - std::chrono::seconds(1));
  });
  EXPECT_EQ(late.Wait().error_code(), grpc::DEADLINE_EXCEEDED);
  AsyncAttend distant(server, OneItemRequest(), [](grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::hours(24 * 365 * 200));
  });
  EXPECT_TRUE(distant.Wait().ok());
}

TEST(ServerLoadTest, RefusesWhatWaitedTooLong) {
  const auto gate = std::make_shared<Gate>();
  ServerOptions options = GateOptions();
  options.max_queue_time = absl::Milliseconds(20);
  options.max_batch_tokens = 1;  // the second one waits for room in the list
  TestServer server(options, MakeGateKernel(gate));
  gate->Close();
  AsyncAttend running(server, OneItemRequest());
  gate->AwaitArrivals(1);
  AsyncAttend queued(server, OneItemRequest());
  const grpc::Status status = queued.Wait();
  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("max_queue_time"));
  gate->Open();
  EXPECT_TRUE(running.Wait().ok());
}

TEST(ServerLoadTest, OutlivesClientsThatVanishMidRequest) {
  TestServer server;
  const std::string message = MakeRequest({.q_len = 64, .kv_len = 64, .head_dim = 64}, 1).SerializeAsString();
  for (int i = 0; i < 50; ++i) {
    RawCall call(server.NewChannel(), kAttendMethod);
    call.Write(message);
    if (i % 2 == 0) call.WritesDone();
    // The channel goes away with the call open.
  }
  grpc::ClientContext context;
  v1::AttendResponse response;
  EXPECT_TRUE(server.NewStub()->Attend(&context, OneItemRequest(), &response).ok());
  AwaitTrue([&] { return server.server().in_flight_requests() == 0; });
}

}  // namespace
}  // namespace triad
