// Hosted layers, through the whole client, against a server in this process.
#include "triad/layers.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/fake_connection.h"
#include "tests/unit/client/fake_server.h"
#include "triad/client.h"

namespace triad::client {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

TEST(LayersTest, ForwardBringsTheAnswer) {
  FakeServer server;
  server.service.forward = [](auto&, const v1::ForwardRequest& request, v1::ForwardResponse& response) {
    EXPECT_EQ(request.layer(), "demo");
    *response.mutable_output() = request.input();
    response.set_version(3);
    return grpc::Status::OK;
  };
  const SmallProblem problem{};
  const auto answer = server.Connect().Forward(problem.HiddenStates());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->output.float32(), ElementsAreArray(problem.values));
  EXPECT_EQ(answer->version, 3);
}

TEST(LayersTest, ForwardAsyncBringsTheAnswer) {
  FakeServer server;
  const SmallProblem problem{};
  absl::StatusOr<ForwardResponse> answer;
  absl::Notification arrived;
  server.Connect().ForwardAsync(problem.HiddenStates(), {}, [&](absl::StatusOr<ForwardResponse> result) {
    answer = std::move(result);
    arrived.Notify();
  });
  arrived.WaitForNotification();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->output.float32(), ElementsAreArray(problem.values));
}

TEST(LayersTest, ForwardIsRetriedWhileTheServerDrains) {
  FakeServer server;
  std::atomic<int> calls = 0;
  server.service.forward = [&](grpc::ServerContext&, const v1::ForwardRequest& request, v1::ForwardResponse& response) {
    if (++calls == 1) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "draining");
    *response.mutable_output() = request.input();
    return grpc::Status::OK;
  };
  const auto answer = server.Connect().Forward(SmallProblem().HiddenStates());
  EXPECT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(calls, 2);
}

TEST(LayersTest, ForwardNamesALayerThatIsNotThere) {
  FakeServer server;
  server.service.forward = [](auto&, const v1::ForwardRequest& request, auto&) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "layer " + request.layer() + " is not loaded");
  };
  EXPECT_EQ(server.Connect().Forward(SmallProblem().HiddenStates()).status(),
            absl::NotFoundError("layer demo is not loaded"));
}

TEST(LayersTest, AreLoadedListedAndUnloaded) {
  const FakeServer server;
  const Client client = server.Connect();
  EXPECT_TRUE(client.ListLayers()->empty());
  const auto loaded = client.LoadLayer({.name = "minilm/0"});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->version, 1);
  EXPECT_EQ(client.LoadLayer({.name = "minilm/1", .version = 7})->version, 7);

  EXPECT_EQ(client.ListLayers()->size(), 2);
  const auto named = client.ListLayers("minilm/1");
  ASSERT_EQ(named->size(), 1);
  EXPECT_EQ(named->front().name, "minilm/1");
  EXPECT_EQ(client.GetLayer({.name = "minilm/1"})->version, 7);
  EXPECT_EQ(client.GetLayer({.name = "minilm/1", .version = 6}).status().code(), absl::StatusCode::kNotFound);

  EXPECT_EQ(client.UnloadLayer({.name = "minilm/1"}).code(), absl::StatusCode::kInvalidArgument) << "no version";
  EXPECT_EQ(client.UnloadLayer({.name = "minilm/1", .version = 7}), absl::OkStatus());
  EXPECT_EQ(client.UnloadLayer({.name = "minilm/1", .version = 7}).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace triad::client
