// Attention through the client library, from a whole server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/client_content.h"
#include "tests/support/server_fixture.h"
#include "tests/support/server_gate_kernel.h"
#include "triad/client.h"

namespace triad::client {
namespace {

using ::testing::HasSubstr;

Client Connect(const TestServer& server, const RetryOptions& retry = {}) {
  return *Client::Create({.target = server.target(), .retry = retry});
}

TEST(ClientAttendTest, EveryFormOfACallBringsTheSameBytes) {
  const TestServer server;
  const Client client = Connect(server);
  const Problem problem(/*tokens=*/40);
  const auto sync = client.Attend(problem.Request());
  ASSERT_TRUE(sync.ok()) << sync.status();

  Awaited<AttendResponse> async;
  client.AttendAsync(problem.Request(), {}, async.Callback());
  ASSERT_TRUE(async.Wait().ok()) << async.Wait().status();
  EXPECT_EQ(async.Wait()->output.data(), sync->output.data());

  const auto stream = client.OpenAttendStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  for (uint64_t id = 0; id < 10; ++id) ASSERT_TRUE((*stream)->Send(id, problem.Request()).ok());
  ASSERT_TRUE((*stream)->HalfClose().ok());
  int answers = 0;
  while (const std::optional<AttendAnswer> answer = (*stream)->Next()) {
    ASSERT_TRUE(answer->response.ok()) << answer->response.status();
    EXPECT_EQ(answer->response->output.data(), sync->output.data());
    ++answers;
  }
  EXPECT_EQ(answers, 10);
  EXPECT_EQ((*stream)->Finish(), absl::OkStatus());
}

TEST(ClientAttendTest, TheReferenceKernelAgrees) {
  const TestServer server;
  const Client client = Connect(server);
  const Problem problem(/*tokens=*/40);
  AttendRequest request = problem.Request();
  request.causal = true;
  const auto answer = client.Attend(request);
  request.kernel = Kernel::kReference;
  const auto reference = client.Attend(request);
  ASSERT_TRUE(answer.ok() && reference.ok()) << answer.status() << reference.status();
  for (size_t i = 0; i < answer->output.float32().size(); ++i) {
    ASSERT_NEAR(answer->output.float32()[i], reference->output.float32()[i], 1e-5) << i;
  }
}

TEST(ClientAttendTest, ABadItemOfAStreamFailsAlone) {
  const TestServer server;
  const Problem problem(/*tokens=*/4);
  AttendRequest bad = problem.Request();
  bad.causal = true;
  bad.query_lengths = std::vector<int64_t>{3};  // and no alignment
  const auto stream = Connect(server).OpenAttendStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  ASSERT_TRUE((*stream)->Send(1, bad).ok());
  ASSERT_TRUE((*stream)->Send(2, problem.Request()).ok());
  ASSERT_TRUE((*stream)->HalfClose().ok());
  while (const std::optional<AttendAnswer> answer = (*stream)->Next()) {
    EXPECT_EQ(answer->response.status().code(),
              answer->request_id == 1 ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kOk);
  }
  EXPECT_EQ((*stream)->Finish(), absl::OkStatus());
}

TEST(ClientAttendTest, WhatTheServerWouldRefuseIsNotSent) {
  ServerOptions options = TestServerOptions();
  options.max_batch = 2;
  options.max_message_bytes = 1 << 16;
  options.max_in_flight_bytes = 1 << 20;
  const TestServer server(options);
  const Client client = Connect(server);

  const std::vector<float> values = Deviates(1024, 1);
  const TensorView packed = TensorView::Float32(values, {4, 16, 16});
  const std::vector<int64_t> lengths = {1, 2, 1};
  const auto batch = client.Attend({.query = packed,
                                    .key = packed,
                                    .value = packed,
                                    .layout = Layout::kPacked,
                                    .query_lengths = lengths,
                                    .key_lengths = lengths});
  EXPECT_THAT(std::string(batch.status().message()), HasSubstr("at most 2, --max_batch of the server at"));

  const TensorView thin = TensorView::Float32(values, {1, 128, 8, 1});
  const auto reply = client.Attend({.query = thin, .key = thin, .value = thin, .return_weights = true});
  EXPECT_THAT(std::string(reply.status().message()),
              HasSubstr("output, lse and weights must be at most 65536, --max_message_bytes of the server at"));
  EXPECT_EQ(server.Metric(R"(triad_requests_total{code="INVALID_ARGUMENT",method="Attend"})"), 0);
}

// One compute thread behind a gate, so that a test decides what runs and what waits.
class GatedServerTest : public ::testing::Test {
 protected:
  static ServerOptions Options() {
    ServerOptions options = TestServerOptions();
    options.threads = 1;
    options.max_inline_flop = 0;
    options.max_in_flight_requests = 1;
    return options;
  }
  GatedServerTest() { gate_->Close(); }
  ~GatedServerTest() override { gate_->Open(); }

  const Problem problem_ = Problem(/*tokens=*/1);
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  TestServer server_{Options(), MakeGateKernel(gate_)};
};

TEST_F(GatedServerTest, ACallEndsAtItsDeadlineAndTheNextIsServed) {
  const Client client = Connect(server_);
  const auto late = client.Attend(problem_.Request(), {.timeout = absl::Milliseconds(50)});
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded) << late.status();
  gate_->Open();
  const auto next = client.Attend(problem_.Request(), {.timeout = kLong});
  EXPECT_TRUE(next.ok()) << next.status();
}

TEST_F(GatedServerTest, AStopEndsACallThatRuns) {
  std::stop_source stop;
  Awaited<AttendResponse> answer;
  Connect(server_).AttendAsync(problem_.Request(), {.timeout = kLong, .cancel = stop.get_token()}, answer.Callback());
  gate_->AwaitArrivals(1);
  stop.request_stop();
  EXPECT_EQ(answer.Wait().status().code(), absl::StatusCode::kCancelled);
}

TEST_F(GatedServerTest, ARefusalForLoadIsRetriedUntilThereIsRoom) {
  const Client client = Connect(server_, {.max_attempts = 100'000});
  Awaited<AttendResponse> running;
  client.AttendAsync(problem_.Request(), {.timeout = kLong}, running.Callback());
  gate_->AwaitArrivals(1);
  Awaited<AttendResponse> refused;
  client.AttendAsync(problem_.Request(), {.timeout = kLong}, refused.Callback());
  while (server_.Metric(R"(triad_refusals_total{reason="requests"})") < 2) std::this_thread::yield();
  gate_->Open();
  EXPECT_TRUE(running.Wait().ok()) << running.Wait().status();
  EXPECT_TRUE(refused.Wait().ok()) << refused.Wait().status();
}

TEST_F(GatedServerTest, ARefusalForLoadIsReportedOnceAttemptsAreUsedUp) {
  const Client client = Connect(server_, {.max_attempts = 1});
  Awaited<AttendResponse> running;
  client.AttendAsync(problem_.Request(), {.timeout = kLong}, running.Callback());
  gate_->AwaitArrivals(1);
  const auto refused = client.Attend(problem_.Request(), {.timeout = kLong});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted) << refused.status();
  EXPECT_TRUE(RetryPushback(refused.status()).has_value()) << "when to come back";
  gate_->Open();
  EXPECT_TRUE(running.Wait().ok()) << running.Wait().status();
}

// A server that goes away, and another that comes at the same address.
class ReturningServerTest : public ::testing::Test {
 protected:
  void GoAway() { first_.Stop(); }
  void ComeBack() {
    ServerOptions options = TestServerOptions();
    options.listen = {target_};
    second_ = std::make_unique<TestServer>(options);
  }
  Client ConnectWith(const RetryOptions& retry) const { return *Client::Create({.target = target_, .retry = retry}); }

  const Problem problem_ = Problem(/*tokens=*/4);
  TestServer first_;  // its folder, with the socket, outlives the server in it
  const std::string target_ = first_.target();
  std::unique_ptr<TestServer> second_;
};

TEST_F(ReturningServerTest, CallsFailWhileItIsAwayAndSucceedOnceItIsBack) {
  const Client client = ConnectWith({.max_attempts = 1});
  ASSERT_TRUE(client.Attend(problem_.Request()).ok());
  GoAway();
  EXPECT_EQ(client.Attend(problem_.Request()).status().code(), absl::StatusCode::kUnavailable);
  ComeBack();
  // The channel reconnects by its own clock: until then calls go on failing at once.
  absl::Status status = absl::UnavailableError("not asked yet");
  while (absl::IsUnavailable(status)) status = client.Attend(problem_.Request()).status();
  EXPECT_EQ(status, absl::OkStatus());
}

TEST_F(ReturningServerTest, ACallThatMayRetryOutlastsTheAbsence) {
  const Client client = ConnectWith({.max_attempts = 100'000, .max_backoff = absl::Milliseconds(50)});
  ASSERT_TRUE(client.Attend(problem_.Request()).ok());
  GoAway();
  Awaited<AttendResponse> answer;
  client.AttendAsync(problem_.Request(), {.timeout = kLong}, answer.Callback());
  ComeBack();
  EXPECT_TRUE(answer.Wait().ok()) << answer.Wait().status();
}

TEST_F(ReturningServerTest, AStreamEndsWithTheServerAndANewOneOpens) {
  const Client client = ConnectWith({});
  auto stream = client.OpenAttendStream();
  ASSERT_TRUE(stream.ok());
  ASSERT_TRUE((*stream)->Send(1, problem_.Request()).ok());
  EXPECT_TRUE((*stream)->Next()->response.ok());
  GoAway();
  EXPECT_FALSE((*stream)->Next().has_value());
  EXPECT_FALSE((*stream)->Finish().ok());
  ComeBack();
  ASSERT_TRUE(ConnectWith({}).Attend(problem_.Request()).ok());
}

}  // namespace
}  // namespace triad::client
