// The whole client against a server in this process.
#include "triad/client.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "client/src/channel_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/fake_connection.h"
#include "tests/unit/client/fake_server.h"

namespace triad::client {
namespace {

using ::testing::HasSubstr;

// Longer than a test may take: nothing below waits for it.
constexpr absl::Duration kLong = absl::Minutes(5);
// Passes while a handler is held, however slow the machine is.
constexpr absl::Duration kShort = absl::Milliseconds(50);

// One answer, awaited.
class Awaited {
 public:
  AttendCallback Callback() {
    return [this](absl::StatusOr<AttendResponse> answer) {
      answer_ = std::move(answer);
      arrived_.Notify();
    };
  }
  bool arrived() const { return arrived_.HasBeenNotified(); }
  const absl::StatusOr<AttendResponse>& Wait() {
    arrived_.WaitForNotification();
    return answer_;
  }

 private:
  absl::StatusOr<AttendResponse> answer_;
  absl::Notification arrived_;
};

// A handler that holds its call until it is let go.
struct HeldCall {
  auto Handler() {
    return [this](auto&, const v1::AttendRequest& request, v1::AttendResponse& response) {
      arrived.Notify();
      release.WaitForNotification();
      *response.mutable_output() = request.value();
      return grpc::Status::OK;
    };
  }

  absl::Notification arrived;
  absl::Notification release;
};

// Refuses `refusals` calls with `status`, and trailing metadata if any; then answers.
auto RefuseFirst(int refusals, const grpc::Status& status, const std::string& pushback, std::atomic<int>& calls) {
  return [=, &calls](grpc::ServerContext& context, const v1::AttendRequest& request, v1::AttendResponse& response) {
    if (calls.fetch_add(1) < refusals) {
      if (!pushback.empty()) context.AddTrailingMetadata("grpc-retry-pushback-ms", pushback);
      return status;
    }
    *response.mutable_output() = request.value();
    return grpc::Status::OK;
  };
}

const grpc::Status kQueueFull(grpc::StatusCode::RESOURCE_EXHAUSTED, "queue full");

TEST(ClientTest, AttendBringsTheAnswer) {
  FakeServer server;
  const SmallProblem problem{};
  const auto answer = server.Connect().Attend(problem.Request());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->output.float32(), ::testing::ElementsAreArray(problem.values));
}

TEST(ClientTest, AttendAsyncBringsTheAnswer) {
  FakeServer server;
  const SmallProblem problem{};
  Awaited answer;
  server.Connect().AttendAsync(problem.Request(), {}, answer.Callback());
  ASSERT_TRUE(answer.Wait().ok()) << answer.Wait().status();
  EXPECT_THAT(answer.Wait()->output.float32(), ::testing::ElementsAreArray(problem.values));
}

TEST(ClientTest, MessagesPastGrpcsDefaultLimitPassBothWays) {
  FakeServer server;
  const std::vector<float> values(int64_t{2} << 20, 0.25F);  // 8 MiB
  const TensorView tensor = TensorView::Float32(values, {1, 2 << 20, 1, 1});
  const auto answer = server.Connect().Attend({.query = tensor, .key = tensor, .value = tensor});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->output.data(), tensor.data);
}

TEST(ClientTest, AnswersPastTheClientsLimitAreRefused) {
  FakeServer server;
  server.service.attend = [](auto&, const auto&, v1::AttendResponse& response) {
    response.mutable_output()->set_data(std::string(1 << 20, 'x'));
    return grpc::Status::OK;
  };
  const auto answer = server.Connect({.max_message_bytes = 1 << 19}).Attend(SmallProblem().Request());
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kResourceExhausted) << answer.status();
}

TEST(ClientTest, ACallEndsAtItsDeadline) {
  HeldCall held;
  FakeServer server;
  server.service.attend = held.Handler();
  const SmallProblem problem{};
  const auto answer = server.Connect().Attend(problem.Request(), {.timeout = kShort});
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded) << answer.status();
  if (server.Connect().Attend(problem.Request(), {.timeout = absl::ZeroDuration()}).status().code() !=
      absl::StatusCode::kDeadlineExceeded) {
    ADD_FAILURE() << "a timeout of 0 has passed";
  }
  held.release.Notify();
}

TEST(ClientTest, EveryCallHasADeadlineUnlessToldOtherwise) {
  FakeServer server;
  std::atomic<bool> bounded = false;
  server.service.attend = [&](grpc::ServerContext& context, const auto& request, auto& response) {
    bounded = context.deadline() < std::chrono::system_clock::now() + std::chrono::hours(24);
    *response.mutable_output() = request.value();
    return grpc::Status::OK;
  };
  const SmallProblem problem{};
  ASSERT_TRUE(server.Connect().Attend(problem.Request()).ok());
  EXPECT_TRUE(bounded);
  ASSERT_TRUE(server.Connect().Attend(problem.Request(), {.timeout = absl::InfiniteDuration()}).ok());
  EXPECT_FALSE(bounded);
}

TEST(ClientTest, AStopCancelsACallInFlight) {
  HeldCall held;
  FakeServer server;
  server.service.attend = held.Handler();
  const SmallProblem problem{};
  std::stop_source stop;
  Awaited answer;
  server.Connect().AttendAsync(problem.Request(), {.timeout = kLong, .cancel = stop.get_token()}, answer.Callback());
  held.arrived.WaitForNotification();
  EXPECT_FALSE(answer.arrived());
  stop.request_stop();
  EXPECT_EQ(answer.Wait().status().code(), absl::StatusCode::kCancelled);
  held.release.Notify();
}

TEST(ClientTest, AStopBeforeTheCallCancelsIt) {
  FakeServer server;
  std::stop_source stop;
  stop.request_stop();
  const auto answer = server.Connect().Attend(SmallProblem().Request(), {.cancel = stop.get_token()});
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kCancelled) << answer.status();
}

TEST(ClientTest, CallsInFlightOutliveTheClient) {
  HeldCall held;
  FakeServer server;
  server.service.attend = held.Handler();
  const SmallProblem problem{};
  Awaited answer;
  server.Connect({.channels = 2}).AttendAsync(problem.Request(), {.timeout = kLong}, answer.Callback());
  held.arrived.WaitForNotification();
  held.release.Notify();
  EXPECT_TRUE(answer.Wait().ok()) << answer.Wait().status();
}

TEST(ClientTest, CallsInFlightEndWhenTheServerGoes) {
  HeldCall held;
  auto server = std::make_unique<FakeServer>();
  server->service.attend = held.Handler();
  const SmallProblem problem{};
  Awaited answer;
  server->Connect({.retry = {.max_attempts = 1}}).AttendAsync(problem.Request(), {.timeout = kLong}, answer.Callback());
  held.arrived.WaitForNotification();
  // Cancels what is in flight, and waits for the handler.
  std::thread shutdown([&] { server->server().Shutdown(std::chrono::system_clock::now()); });
  EXPECT_FALSE(answer.Wait().ok());
  held.release.Notify();
  shutdown.join();
}

TEST(ClientTest, ACallbackMayHoldTheLastClient) {
  const FakeServer server;
  const SmallProblem problem{};
  for (int i = 0; i < 20; ++i) {
    const auto held = std::make_shared<absl::Notification>();
    Awaited answer;
    {
      const Client client = server.Connect();
      client.AttendAsync(problem.Request(), {}, [client, held, callback = answer.Callback()](auto result) {
        held->WaitForNotification();  // until the client below has gone
        callback(std::move(result));
      });
    }
    held->Notify();
    EXPECT_TRUE(answer.Wait().ok()) << answer.Wait().status();
  }
}

TEST(ClientTest, LoadIsRetriedWhenTheServerSaysWhen) {
  FakeServer server;
  const SmallProblem problem{};
  std::atomic<int> calls = 0;
  server.service.attend = RefuseFirst(/*refusals=*/2, kQueueFull, "1", calls);
  const auto answer = server.Connect().Attend(problem.Request(), {.timeout = kLong});
  EXPECT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(calls, 3);
  Awaited async;
  calls = 0;
  server.Connect().AttendAsync(problem.Request(), {.timeout = kLong}, async.Callback());
  EXPECT_TRUE(async.Wait().ok()) << async.Wait().status();
  EXPECT_EQ(calls, 3);
}

TEST(ClientTest, LoadIsNotRetriedWhenTheServerSaysNeverOrNothing) {
  for (const std::string pushback : {"-1", "soon", ""}) {
    FakeServer server;
    std::atomic<int> calls = 0;
    server.service.attend = RefuseFirst(/*refusals=*/1, kQueueFull, pushback, calls);
    const auto answer = server.Connect().Attend(SmallProblem().Request(), {.timeout = kLong});
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kResourceExhausted) << answer.status();
    EXPECT_EQ(calls, 1) << "pushback '" << pushback << "'";
  }
}

TEST(ClientTest, LargeMessagesAreRetriedToo) {
  FakeServer server;
  std::atomic<int> calls = 0;
  server.service.attend = RefuseFirst(/*refusals=*/1, {grpc::StatusCode::UNAVAILABLE, "draining"}, "1", calls);
  const std::vector<float> values(1 << 20);  // 4 MiB, far past gRPC's own retry buffer
  const TensorView tensor = TensorView::Float32(values, {1, 1 << 20, 1, 1});
  const auto answer = server.Connect().Attend({.query = tensor, .key = tensor, .value = tensor}, {.timeout = kLong});
  EXPECT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(calls, 2);
}

TEST(ClientTest, TheServersLimitIsCheckedBeforeSending) {
  FakeServer server;
  std::atomic<int> calls = 0;
  server.service.attend = RefuseFirst(0, grpc::Status::OK, "", calls);
  server.service.info.mutable_limits()->set_max_message_bytes(100);
  const auto answer = server.Connect().Attend(SmallProblem().Request());
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(answer.status().message()),
              HasSubstr("at most 100, --max_message_bytes of the server at " + server.target()));
  EXPECT_EQ(calls, 0);
}

TEST(ClientTest, NoServerIsUnavailable) {
  std::string target;
  {
    const FakeServer gone;
    target = gone.target();
  }
  const auto client = Client::Create({.target = target, .retry = {.max_attempts = 1}});
  EXPECT_EQ(client->Attend(SmallProblem().Request()).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(client->GetServerInfo().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(client->CheckHealth().status().code(), absl::StatusCode::kUnavailable);
}

TEST(ClientTest, ServerInfoBringsLimits) {
  FakeServer server;
  server.service.info.set_version("1.2.3");
  server.service.info.mutable_limits()->set_max_queue_time_ns(5);
  const auto info = server.Connect().GetServerInfo();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->version, "1.2.3");
  EXPECT_EQ(info->limits.max_queue_time, absl::Nanoseconds(5));
}

TEST(ClientTest, HealthIsPerService) {
  FakeServer server;
  server.server().GetHealthCheckService()->SetServingStatus("triad.v1.AttentionService", false);
  const Client client = server.Connect();
  EXPECT_EQ(*client.CheckHealth(), Health::kServing);
  EXPECT_EQ(*client.CheckHealth("triad.v1.AttentionService"), Health::kNotServing);
  EXPECT_EQ(client.CheckHealth("nobody").status().code(), absl::StatusCode::kNotFound);
}

TEST(ClientTest, OptionsThatMakeNoSenseAreRefusedByName) {
  const auto refusal = [](const ClientOptions& options) {
    return std::string(Client::Create(options).status().message());
  };
  EXPECT_THAT(refusal({.target = ""}), HasSubstr("target"));
  EXPECT_THAT(refusal({.channels = 0}), HasSubstr("channels"));
  EXPECT_THAT(refusal({.max_message_bytes = int64_t{1} << 31}), HasSubstr("max_message_bytes"));
  EXPECT_THAT(refusal({.retry = {.max_attempts = 0}}), HasSubstr("max_attempts"));
  EXPECT_THAT(refusal({.retry = {.multiplier = 0.5}}), HasSubstr("multiplier"));
  EXPECT_THAT(refusal({.tls = TlsOptions{.root_certs_path = "/nonexistent.pem"}}), HasSubstr("/nonexistent.pem"));
}

TEST(PickChannelTest, TakesTheLeastBusyAndGoesRoundAmongEquals) {
  EXPECT_EQ(PickChannel({0}, 7), 0);
  EXPECT_EQ(PickChannel({2, 1, 3}, 0), 1);
  EXPECT_EQ(PickChannel({2, 1, 3}, 2), 1);
  EXPECT_EQ(PickChannel({0, 0, 0}, 4), 1);
  EXPECT_EQ(PickChannel({1, 0, 0}, 0), 1);
  EXPECT_EQ(PickChannel({0, 0, 1}, 2), 0);
}

}  // namespace
}  // namespace triad::client
