// Hosted layers through the client library, from a whole server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/tensor/safetensors_file.h"
#include "tests/integration/client_content.h"
#include "tests/support/server_fixture.h"
#include "tests/support/server_gate_kernel.h"
#include "tests/support/temp_path.h"
#include "triad/client.h"

namespace triad::client {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTokens = 7;
constexpr int64_t kDemoDim = 512;

Client ConnectTo(const TestServer& server, const RetryOptions& retry = {}) {
  return *Client::Create({.target = server.target(), .retry = retry});
}

// As TestServerOptions, with the layer "demo".
ServerOptions DemoOptions() {
  ServerOptions options = TestServerOptions();
  options.demo_layer = true;
  return options;
}

// Hidden states [1, kTokens, kDemoDim].
struct HiddenStates {
  ForwardRequest Request() const {
    return {.layer = "demo", .input = TensorView::Float32(values, {1, kTokens, kDemoDim})};
  }

  const std::vector<float> values = Deviates(kTokens * kDemoDim, 1);
};

TEST(ClientLayerTest, EveryFormOfACallBringsTheSameBytes) {
  const TestServer server(DemoOptions());
  const Client client = ConnectTo(server);
  const HiddenStates hidden{};
  const auto sync = client.Forward(hidden.Request());
  ASSERT_TRUE(sync.ok()) << sync.status();
  EXPECT_EQ(sync->output.shape(), Shape({1, kTokens, kDemoDim}));
  EXPECT_EQ(sync->version, 1);
  EXPECT_GE(sync->timings.batch_requests, 1);
  EXPECT_GE(sync->timings.batch_tokens, kTokens);

  Awaited<ForwardResponse> async;
  client.ForwardAsync(hidden.Request(), {}, async.Callback());
  ASSERT_TRUE(async.Wait().ok()) << async.Wait().status();
  EXPECT_EQ(async.Wait()->output.data(), sync->output.data());

  const auto stream = client.OpenForwardStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  for (uint64_t id = 0; id < 10; ++id) ASSERT_TRUE((*stream)->Send(id, hidden.Request()).ok());
  ASSERT_TRUE((*stream)->HalfClose().ok());
  int answers = 0;
  while (const std::optional<ForwardAnswer> answer = (*stream)->Next()) {
    ASSERT_TRUE(answer->response.ok()) << answer->response.status();
    EXPECT_EQ(answer->response->output.data(), sync->output.data());
    ++answers;
  }
  EXPECT_EQ(answers, 10);
  EXPECT_EQ((*stream)->Finish(), absl::OkStatus());
}

TEST(ClientLayerTest, WeightsSumToOne) {
  const TestServer server(DemoOptions());
  const HiddenStates hidden{};
  ForwardRequest request = hidden.Request();
  request.return_weights = true;
  request.return_lse = true;
  const auto answer = ConnectTo(server).Forward(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->weights->shape(), Shape({1, 8, kTokens, kTokens}));
  EXPECT_EQ(answer->lse->shape(), Shape({1, 8, kTokens}));
  const absl::Span<const float> weights = answer->weights->float32();
  for (size_t row = 0; row < 8 * kTokens; ++row) {
    double sum = 0;
    for (const float weight : weights.subspan(row * kTokens, kTokens)) sum += weight;
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST(ClientLayerTest, ABadItemOfAStreamFailsAlone) {
  const TestServer server(DemoOptions());
  const HiddenStates hidden{};
  ForwardRequest bad = hidden.Request();
  bad.input.shape = {1, 2 * kTokens, kDemoDim / 2};
  ForwardRequest unknown = hidden.Request();
  unknown.layer = "none";
  const auto stream = ConnectTo(server).OpenForwardStream();
  ASSERT_TRUE(stream.ok()) << stream.status();
  ASSERT_TRUE((*stream)->Send(1, bad).ok());
  ASSERT_TRUE((*stream)->Send(2, unknown).ok());
  ASSERT_TRUE((*stream)->Send(3, hidden.Request()).ok());
  ASSERT_TRUE((*stream)->HalfClose().ok());
  const absl::StatusCode expected[] = {absl::StatusCode::kUnknown, absl::StatusCode::kInvalidArgument,
                                       absl::StatusCode::kNotFound, absl::StatusCode::kOk};
  while (const std::optional<ForwardAnswer> answer = (*stream)->Next()) {
    EXPECT_EQ(answer->response.status().code(), expected[answer->request_id]) << answer->response.status();
  }
  EXPECT_EQ((*stream)->Finish(), absl::OkStatus());
}

TEST(ClientLayerTest, WhatTheServerWouldRefuseIsNotSent) {
  ServerOptions options = DemoOptions();
  options.max_tokens_per_request = 2 * kTokens - 1;
  const TestServer server(options);
  const auto refused = ConnectTo(server).Forward(HiddenStates().Request());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("--max_tokens_per_request of the server at"));
  EXPECT_EQ(server.Metric(R"(triad_requests_total{code="INVALID_ARGUMENT",method="Forward"})"), 0);
}

TEST(ClientLayerTest, TheDemoLayerIsListed) {
  const TestServer server(DemoOptions());
  const Client client = ConnectTo(server);
  const auto layers = client.ListLayers();
  ASSERT_TRUE(layers.ok()) << layers.status();
  ASSERT_EQ(layers->size(), 1u);
  EXPECT_EQ(layers->front().name, "demo");
  const auto demo = client.GetLayer({.name = "demo"});
  ASSERT_TRUE(demo.ok()) << demo.status();
  EXPECT_EQ(demo->model_dim, kDemoDim);
  EXPECT_EQ(demo->heads, 8);
  EXPECT_EQ(demo->qk_head_dim, 64);
  EXPECT_GT(demo->weights_bytes, 0);
  EXPECT_EQ(client.GetLayer({.name = "demo", .version = 2}).status().code(), absl::StatusCode::kNotFound);
  const HiddenStates hidden{};
  ForwardRequest nobody = hidden.Request();
  nobody.layer = "nobody";
  EXPECT_EQ(client.Forward(nobody).status().code(), absl::StatusCode::kNotFound);
}

TEST(ClientLayerTest, AdministrationIsDeniedUnlessAllowed) {
  const TestServer server(DemoOptions());
  const Client client = ConnectTo(server);
  EXPECT_EQ(client.LoadLayer({.name = "mean"}).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(client.UnloadLayer({.name = "demo", .version = 1}).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(client.GetLayer({.name = "demo"}).ok());
}

constexpr int64_t kMeanDim = 4;

// A layer whose queries and keys are 0, so that all weights are equal, and whose values are its input: its output is
// `factor` times the mean of the tokens.
void WriteMeanLayer(const std::filesystem::path& folder, float factor) {
  std::vector<float> zeros(kMeanDim * kMeanDim), identity(kMeanDim * kMeanDim), scaled(kMeanDim * kMeanDim);
  for (size_t i = 0; i < kMeanDim; ++i) {
    identity[i * kMeanDim + i] = 1;
    scaled[i * kMeanDim + i] = factor;
  }
  const auto view = [](const std::vector<float>& values) {
    return triad::TensorView{.data = reinterpret_cast<const std::byte*>(values.data()),
                             .dtype = DType::kF32,
                             .shape = triad::Shape{kMeanDim, kMeanDim}};
  };
  std::filesystem::create_directories(folder);
  ASSERT_TRUE(WriteSafetensors(folder / "weights.safetensors",
                               {{"q", view(zeros)}, {"k", view(zeros)}, {"v", view(identity)}, {"o", view(scaled)}})
                  .ok());
  std::ofstream(folder / "layer.textproto") << "model_dim: 4 heads: 2 query { weight: 'q' } key { weight: 'k' } "
                                               "value { weight: 'v' } output { weight: 'o' }\n";
}

// A server that may load what a test writes into its folder of layers, which is there, and empty, when it starts.
class LayerAdminTest : public ::testing::Test {
 protected:
  static ServerOptions Options(const std::filesystem::path& layer_dir) {
    ServerOptions options = TestServerOptions();
    std::filesystem::remove_all(layer_dir);
    std::filesystem::create_directories(layer_dir);
    options.layer_dir = layer_dir;
    options.allow_layer_admin = true;
    return options;
  }
  ~LayerAdminTest() override { std::filesystem::remove_all(layer_dir_); }

  // What `version` makes of two tokens [0, 1, 2, 3] and [4, 3, 2, 1]: the factor of their mean, which is 2 everywhere.
  absl::StatusOr<float> Factor(std::optional<int64_t> version) const {
    const std::vector<float> values = {0, 1, 2, 3, 4, 3, 2, 1};
    const auto answer = client_.Forward(
        {.layer = "mean/2", .version = version, .input = TensorView::Float32(values, {1, 2, kMeanDim})});
    if (!answer.ok()) return answer.status();
    return answer->output.float32()[0] / 2;
  }

  const std::filesystem::path layer_dir_ = TempPath("layers");
  const TestServer server_{Options(layer_dir_)};
  const Client client_ = ConnectTo(server_);
};

TEST_F(LayerAdminTest, VersionsAreLoadedServedAndUnloaded) {
  WriteMeanLayer(layer_dir_ / "mean/2/1", 1);
  WriteMeanLayer(layer_dir_ / "mean/2/5", 5);
  EXPECT_EQ(Factor({}).status().code(), absl::StatusCode::kNotFound) << "not loaded yet";
  const auto highest = client_.LoadLayer({.name = "mean/2"});
  ASSERT_TRUE(highest.ok()) << highest.status();
  EXPECT_EQ(highest->version, 5);
  EXPECT_EQ(highest->model_dim, kMeanDim);
  ASSERT_TRUE(client_.LoadLayer({.name = "mean/2", .version = 1}).ok());
  EXPECT_EQ(client_.ListLayers("mean/2")->size(), 2u);
  EXPECT_EQ(*Factor({}), 5);
  EXPECT_EQ(*Factor(1), 1);

  EXPECT_EQ(client_.UnloadLayer({.name = "mean/2", .version = 5}), absl::OkStatus());
  EXPECT_EQ(*Factor({}), 1) << "the highest that is left";
  EXPECT_EQ(Factor(5).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(client_.UnloadLayer({.name = "mean/2", .version = 5}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(client_.UnloadLayer({.name = "mean/2"}).code(), absl::StatusCode::kInvalidArgument) << "which?";
}

TEST_F(LayerAdminTest, AFolderThatHoldsNoLayerIsRefusedWithTheReason) {
  WriteMeanLayer(layer_dir_ / "mean/2/1", 1);
  std::ofstream(layer_dir_ / "mean/2/1/layer.textproto") << "model_dim: 4 heads: 3\n";
  const auto refused = client_.LoadLayer({.name = "mean/2"});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("layer.textproto"));
  EXPECT_EQ(client_.LoadLayer({.name = "nobody"}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(client_.LoadLayer({.name = "../mean"}).status().code(), absl::StatusCode::kInvalidArgument);
}

// One compute thread behind a gate, so that a test decides what runs and what waits.
class GatedLayerTest : public ::testing::Test {
 protected:
  static ServerOptions Options() {
    ServerOptions options = DemoOptions();
    options.threads = 1;
    options.max_inline_flop = 0;
    options.max_in_flight_requests = 1;
    return options;
  }
  GatedLayerTest() { gate_->Close(); }
  ~GatedLayerTest() override { gate_->Open(); }

  const HiddenStates hidden_{};
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  TestServer server_{Options(), MakeGateKernel(gate_)};
};

TEST_F(GatedLayerTest, ACallEndsAtItsDeadlineAndTheNextIsServed) {
  const Client client = ConnectTo(server_);
  const auto late = client.Forward(hidden_.Request(), {.timeout = absl::Milliseconds(50)});
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded) << late.status();
  gate_->Open();
  const auto next = client.Forward(hidden_.Request(), {.timeout = kLong});
  EXPECT_TRUE(next.ok()) << next.status();
}

TEST_F(GatedLayerTest, ARefusalForLoadIsRetriedUntilThereIsRoom) {
  const Client client = ConnectTo(server_, {.max_attempts = 100'000});
  Awaited<ForwardResponse> running;
  client.ForwardAsync(hidden_.Request(), {.timeout = kLong}, running.Callback());
  gate_->AwaitArrivals(1);
  Awaited<ForwardResponse> refused;
  client.ForwardAsync(hidden_.Request(), {.timeout = kLong}, refused.Callback());
  while (server_.Metric(R"(triad_refusals_total{reason="requests"})") < 2) std::this_thread::yield();
  gate_->Open();
  EXPECT_TRUE(running.Wait().ok()) << running.Wait().status();
  EXPECT_TRUE(refused.Wait().ok()) << refused.Wait().status();
}

}  // namespace
}  // namespace triad::client
