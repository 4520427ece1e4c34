// Layers that come and go: the layer service, its rules, and what it does to those who are being served.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/server_fixture.h"
#include "tests/support/server_gate_kernel.h"
#include "tests/support/server_layers.h"
#include "tests/support/server_raw_call.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A server with a layer directory that a test fills.
class ServerLayersTest : public ::testing::Test {
 protected:
  ServerOptions Options() const { return LayerServerOptions(directory_.path()); }
  void Start(const ServerOptions& options, std::unique_ptr<AttentionKernel> kernel = nullptr) {
    server_ = std::make_unique<TestServer>(options, std::move(kernel));
    stub_ = server_->NewStub();
    layers_ = server_->NewLayerStub();
  }
  // Why a server does not start.
  static std::string StartError(const ServerOptions& options) {
    Log log(LogFormat::kText, stderr);
    ServerOptions start = options;
    start.listen = {"127.0.0.1:0"};
    const auto server = Server::Start(start, log);
    return server.ok() ? "" : std::string(server.status().message());
  }

  grpc::Status Load(const std::string& name, std::optional<int64_t> version = std::nullopt) {
    v1::LoadLayerRequest request;
    request.set_name(name);
    if (version) request.set_version(*version);
    grpc::ClientContext context;
    return server_->NewLayerStub()->LoadLayer(&context, request, &loaded_);
  }
  grpc::Status Unload(const std::string& name, std::optional<int64_t> version) {
    v1::UnloadLayerRequest request;
    request.set_name(name);
    if (version) request.set_version(*version);
    grpc::ClientContext context;
    v1::UnloadLayerResponse response;
    return layers_->UnloadLayer(&context, request, &response);
  }
  // "name@version" of all that serve.
  std::vector<std::string> List(const std::string& name = "") {
    v1::ListLayersRequest request;
    request.set_name(name);
    grpc::ClientContext context;
    v1::ListLayersResponse response;
    EXPECT_TRUE(layers_->ListLayers(&context, request, &response).ok());
    std::vector<std::string> keys;
    for (const v1::Layer& layer : response.layers()) keys.push_back(absl::StrCat(layer.name(), "@", layer.version()));
    return keys;
  }
  // On a channel of its own: callable from several threads.
  grpc::Status Forward(const v1::ForwardRequest& request, v1::ForwardResponse& response) const {
    grpc::ClientContext context;
    return server_->NewStub()->Forward(&context, request, &response);
  }
  void ExpectServes(const std::string& name, int64_t version) {
    v1::ForwardResponse response;
    const grpc::Status status = Forward(MakeForwardRequest(name, 1), response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.version(), version);
  }

  const TemporaryFolder directory_;
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<v1::AttentionService::Stub> stub_;
  std::unique_ptr<v1::LayerService::Stub> layers_;
  v1::LoadLayerResponse loaded_;
};

TEST_F(ServerLayersTest, TheStartLoadsTheHighestVersionOfEverything) {
  WriteSmallLayer(directory_.path(), "minilm/0", 1, 1);
  WriteSmallLayer(directory_.path(), "minilm/0", 12, 2);
  WriteSmallLayer(directory_.path(), "b", 3, 3);
  Start(Options());
  EXPECT_THAT(List(), ElementsAre("b@3", "minilm/0@12"));
  EXPECT_THAT(List("b"), ElementsAre("b@3"));
  EXPECT_THAT(List("c"), IsEmpty());
  EXPECT_EQ(server_->Metric("triad_loaded_layers"), 2);
  EXPECT_GE(server_->Metric("triad_layer_weights_bytes"), 2 * 4 * 16 * 16 * 4);
}

TEST_F(ServerLayersTest, LayersChoosesWhatIsLoaded) {
  for (int64_t version : {1, 2, 3}) WriteSmallLayer(directory_.path(), "a", version, 1);
  WriteSmallLayer(directory_.path(), "broken", 1, 1);
  WriteLayerFile(directory_.path(), "broken/1", "weights.safetensors", "no weights");
  ServerOptions options = Options();
  options.layers = {"a@2", "a@1"};
  Start(options);
  EXPECT_THAT(List(), ElementsAre("a@1", "a@2"));
}

TEST_F(ServerLayersTest, AFailedLoadEndsTheStartWithTheReason) {
  WriteSmallLayer(directory_.path(), "a", 1, 1);
  ServerOptions options = Options();
  options.layers = {"a@2"};
  EXPECT_THAT(StartError(options), AllOf(HasSubstr("a@2"), HasSubstr("there is no")));
  options.layers = {};
  WriteLayerFile(directory_.path(), "a/1", "layer.textproto", "model_dim: 16 heads: 3");
  EXPECT_THAT(StartError(options), HasSubstr("layer a"));
  options.layer_dir = (directory_.path() / "nowhere").string();
  EXPECT_THAT(StartError(options), AllOf(HasSubstr("--layer_dir"), HasSubstr("nowhere")));
}

TEST_F(ServerLayersTest, TheDemoLayerIsThereUnlessTurnedOff) {
  ServerOptions options = Options();
  options.demo_layer = true;
  Start(options);
  EXPECT_THAT(List(), ElementsAre("demo@1"));
  v1::GetLayerRequest request;
  request.set_name("demo");
  v1::Layer layer;
  grpc::ClientContext context;
  ASSERT_TRUE(layers_->GetLayer(&context, request, &layer).ok());
  EXPECT_EQ(layer.model_dim(), 512);
  EXPECT_EQ(layer.context_dim(), 512);
  EXPECT_EQ(layer.heads(), 8);
  EXPECT_EQ(layer.qk_head_dim(), 64);
  EXPECT_FALSE(layer.requires_context());
  EXPECT_GE(layer.weights_bytes(), 4 * 512 * 512 * 4);
  server_->Stop();

  WriteSmallLayer(directory_.path(), "demo", 1, 1);
  EXPECT_THAT(StartError(options), HasSubstr("--demo_layer=false"));
}

TEST_F(ServerLayersTest, LoadsAndUnloadsVersionsBesideEachOther) {
  WriteSmallLayer(directory_.path(), "a", 1, 1);
  Start(Options());
  WriteSmallLayer(directory_.path(), "a", 2, 2);
  ASSERT_TRUE(Load("a").ok());
  EXPECT_EQ(loaded_.layer().version(), 2);
  EXPECT_EQ(loaded_.layer().model_dim(), kSmallDim);
  EXPECT_THAT(List(), ElementsAre("a@1", "a@2"));
  ExpectServes("a", 2);
  EXPECT_TRUE(Load("a", 2).ok()) << "loaded already: the same answer";
  EXPECT_TRUE(Unload("a", 2).ok());
  ExpectServes("a", 1);
  EXPECT_EQ(Unload("a", 2).error_code(), grpc::NOT_FOUND);
  EXPECT_EQ(Unload("a", std::nullopt).error_message(), "version must name the one to unload, > 0; was unset");
  EXPECT_EQ(Unload("a", 0).error_message(), "version must name the one to unload, > 0; was 0");
  EXPECT_EQ(server_->Metric(R"(triad_requests_total{code="OK",method="LoadLayer"})"), 2);
  EXPECT_EQ(server_->Metric(R"(triad_requests_total{code="NOT_FOUND",method="UnloadLayer"})"), 1);
}

TEST_F(ServerLayersTest, AdministrationIsDeniedUnlessAllowed) {
  WriteSmallLayer(directory_.path(), "a", 1, 1);
  ServerOptions options = Options();
  options.allow_layer_admin = ServerOptions().allow_layer_admin;
  Start(options);
  for (const grpc::Status& status : {Load("a", 1), Load("../a"), Unload("a", 1)}) {
    EXPECT_EQ(status.error_code(), grpc::PERMISSION_DENIED);
    EXPECT_THAT(status.error_message(), HasSubstr("--allow_layer_admin"));
  }
  ExpectServes("a", 1);
}

TEST_F(ServerLayersTest, NamesAndLinksCannotLeaveTheDirectory) {
  const TemporaryFolder outside;
  WriteSmallLayer(outside.path(), "secret", 1, 1);
  WriteSmallLayer(directory_.path(), "a", 1, 1);
  std::filesystem::create_directory_symlink(outside.path() / "secret", directory_.path() / "link");
  Start(Options());
  const std::string outside_name = outside.path().filename().string();
  for (const std::string& name : {absl::StrCat("../", outside_name, "/secret"), (outside.path() / "secret").string(),
                                  absl::StrCat("a/../../", outside_name, "/secret"), std::string("a\0b", 3),
                                  std::string("."), std::string(), std::string(1 << 20, 'a')}) {
    EXPECT_EQ(Load(name, 1).error_code(), grpc::INVALID_ARGUMENT) << name.substr(0, 100);
  }
  EXPECT_EQ(Load("a", -1).error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(Load("link", 1).error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_EQ(Load("a", 7).error_code(), grpc::NOT_FOUND);
  EXPECT_THAT(List(), ElementsAre("a@1"));
}

TEST_F(ServerLayersTest, HostileFilesLeaveWhatServes) {
  WriteSmallLayer(directory_.path(), "a", 1, 1);
  Start(Options());
  const std::string weights = "weights.safetensors";
  WriteSmallLayer(directory_.path(), "a", 2, 2);
  std::string good;
  {
    std::ifstream file(directory_.path() / "a/2" / weights, std::ios::binary);
    good.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::string infinite = good;
  infinite.replace(infinite.size() - 4, 4, std::string("\x00\x00\x80\x7f", 4));
  for (const std::string& bytes :
       {std::string(), std::string(8, '\xff'), good.substr(0, good.size() / 2), good.substr(0, good.size() - 1),
        good + "x", std::string(good.size(), '\0'), infinite}) {
    WriteLayerFile(directory_.path(), "a/2", weights, bytes);
    const grpc::Status status = Load("a", 2);
    EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION) << status.error_message();
    EXPECT_THAT(status.error_message(), AllOf(HasSubstr("a@2"), Not(HasSubstr(directory_.path().string()))));
    ExpectServes("a", 1);
  }
  WriteLayerFile(directory_.path(), "a/2", weights, good);
  for (const char* text : {"", "model_dim: -1", "heads: {", "model_dim: 16 heads: 2 surprise: 1"}) {
    WriteLayerFile(directory_.path(), "a/2", "layer.textproto", text);
    EXPECT_EQ(Load("a", 2).error_code(), grpc::FAILED_PRECONDITION) << text;
    ExpectServes("a", 1);
  }
  WriteSmallLayer(directory_.path(), "a", 2, 2);
  EXPECT_TRUE(Load("a", 2).ok());
  ExpectServes("a", 2);
}

TEST_F(ServerLayersTest, ACrossAttentionLayerRequiresItsContext) {
  WriteSmallLayer(directory_.path(), "cross", 1, 1);
  WriteLayerFile(directory_.path(), "cross/1", "layer.textproto",
                 absl::StrCat(SmallLayerText(), "context_dim: ", kSmallDim));
  Start(Options());
  v1::GetLayerRequest get;
  get.set_name("cross");
  v1::Layer layer;
  grpc::ClientContext context;
  ASSERT_TRUE(layers_->GetLayer(&context, get, &layer).ok());
  EXPECT_TRUE(layer.requires_context());
  v1::ForwardRequest request = MakeForwardRequest("cross", 1);
  v1::ForwardResponse response;
  const grpc::Status refused = Forward(request, response);
  EXPECT_EQ(refused.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("context"));
  *request.mutable_context() = NormalTensor({1, 5, kSmallDim}, 2);
  request.set_return_weights(true);
  ASSERT_TRUE(Forward(request, response).ok());
  EXPECT_THAT(response.weights().shape(), ElementsAre(1, 2, 3, 5));
}

TEST_F(ServerLayersTest, UnknownFieldsAreRefused) {
  WriteSmallLayer(directory_.path(), "a", 1, 1);
  Start(Options());
  const std::string request(
      "\x0a\x01"
      "a\x98\x06\x01",
      6);  // name "a", and field 99
  for (const char* method : {"ListLayers", "GetLayer", "LoadLayer", "UnloadLayer"}) {
    const RawReply reply = CallRaw(server_->NewChannel(), absl::StrCat("/triad.v1.LayerService/", method), request);
    EXPECT_EQ(reply.status.error_code(), grpc::UNIMPLEMENTED) << method;
    EXPECT_THAT(reply.status.error_message(), HasSubstr("99")) << method;
  }
}

TEST_F(ServerLayersTest, AHotLoadSwapsVersionsBetweenRequests) {
  WriteSmallLayer(directory_.path(), "a", 1, 1);
  Start(Options());
  WriteSmallLayer(directory_.path(), "a", 2, 2);
  const v1::ForwardRequest request = MakeForwardRequest("a", 1, {.batch = 2, .tokens = 9});
  constexpr size_t kClients = 4;
  std::atomic<size_t> served_by_first{0};
  std::vector<std::vector<v1::ForwardResponse>> replies(kClients);
  std::vector<std::thread> clients;
  for (size_t client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      const auto stub = server_->NewStub();
      for (int64_t version = 0; version != 2;) {
        grpc::ClientContext context;
        v1::ForwardResponse response;
        const grpc::Status status = stub->Forward(&context, request, &response);
        ASSERT_TRUE(status.ok()) << status.error_message();
        EXPECT_GE(response.version(), version) << "a client never falls back";
        if (version == 0) ++served_by_first;
        version = response.version();
        replies[client].push_back(std::move(response));
      }
    });
  }
  while (served_by_first < kClients) std::this_thread::yield();
  ASSERT_TRUE(Load("a", 2).ok());
  for (std::thread& client : clients) client.join();

  std::map<int64_t, std::string> alone;
  for (int64_t version : {1, 2}) {
    v1::ForwardRequest pinned = request;
    pinned.set_version(version);
    v1::ForwardResponse response;
    ASSERT_TRUE(Forward(pinned, response).ok());
    alone[version] = response.output().data();
  }
  EXPECT_NE(alone[1], alone[2]);
  for (const auto& client : replies) {
    for (const v1::ForwardResponse& reply : client) EXPECT_EQ(reply.output().data(), alone[reply.version()]);
  }
}

// The gate holds up the attention of requests, and the warm-up of layers.
class ServerLayersGateTest : public ServerLayersTest {
 protected:
  void StartBehindGate(ServerOptions options) {
    WriteSmallLayer(directory_.path(), "a", 1, 1);
    WriteSmallLayer(directory_.path(), "a", 2, 2);
    options.threads = 1;
    options.max_inline_flop = 0;
    options.layers = {"a@1"};
    Start(options, MakeGateKernel(gate_));
    gate_->Close();
  }
  void TearDown() override { gate_->Open(); }

  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
};

TEST_F(ServerLayersGateTest, ARequestKeepsTheVersionItBeganWith) {
  StartBehindGate(Options());
  v1::ForwardResponse response;
  grpc::Status status;
  std::thread client([&] { status = Forward(MakeForwardRequest("a", 1), response); });
  gate_->AwaitArrivals(1);
  EXPECT_TRUE(Unload("a", 1).ok());
  EXPECT_THAT(List(), IsEmpty());
  v1::ForwardResponse none;
  const grpc::Status refused = Forward(MakeForwardRequest("a", 1), none);
  EXPECT_EQ(refused.error_code(), grpc::NOT_FOUND);
  gate_->Open();
  client.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.version(), 1);
}

TEST_F(ServerLayersGateTest, LoadsAreBoundedAndTheRunningOneIsAnsweredByADrain) {
  ServerOptions options = Options();
  options.max_layer_loads = 1;
  StartBehindGate(options);
  grpc::Status end;
  std::thread client([&] { end = Load("a", 2); });
  gate_->AwaitArrivals(1);
  v1::LoadLayerRequest request;
  request.set_name("a");
  v1::LoadLayerResponse response;
  grpc::ClientContext full;
  EXPECT_EQ(layers_->LoadLayer(&full, request, &response).error_code(), grpc::RESOURCE_EXHAUSTED);
  const auto pushback = full.GetServerTrailingMetadata().find("grpc-retry-pushback-ms");
  ASSERT_NE(pushback, full.GetServerTrailingMetadata().end());
  EXPECT_EQ(pushback->second, "1000");
  EXPECT_EQ(server_->Metric(R"(triad_refusals_total{reason="layer_loads"})"), 1);
  EXPECT_THAT(List(), ElementsAre("a@1")) << "not before it is warm";
  EXPECT_TRUE(Unload("a", 1).ok()) << "whatever the loader is at";
  server_->server().BeginDrain();
  grpc::ClientContext draining;
  EXPECT_EQ(layers_->LoadLayer(&draining, request, &response).error_code(), grpc::UNAVAILABLE);
  std::thread drain([&] { EXPECT_TRUE(server_->server().Drain()); });
  gate_->Open();
  drain.join();
  client.join();
  EXPECT_TRUE(end.ok()) << end.error_message();
}

TEST_F(ServerLayersGateTest, ADrainAnswersForwardsInFlight) {
  StartBehindGate(Options());
  std::vector<grpc::Status> ends(4);
  std::vector<std::thread> clients;
  for (size_t i = 0; i < ends.size(); ++i) {
    clients.emplace_back([&, i] {
      v1::ForwardResponse response;
      ends[i] = Forward(MakeForwardRequest("a", i), response);
    });
  }
  while (server_->server().in_flight_requests() < 4) std::this_thread::yield();
  server_->server().BeginDrain();
  v1::ForwardResponse response;
  EXPECT_EQ(Forward(MakeForwardRequest("a", 1), response).error_code(), grpc::UNAVAILABLE);
  std::thread drain([&] { EXPECT_TRUE(server_->server().Drain()); });
  gate_->Open();
  drain.join();
  for (std::thread& client : clients) client.join();
  for (const grpc::Status& end : ends) EXPECT_TRUE(end.ok()) << end.error_message();
}

}  // namespace
}  // namespace triad
