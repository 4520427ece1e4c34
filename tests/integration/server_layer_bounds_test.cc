// What a layer directory may not bring in: folders that are being prepared, and more weights than there is memory for.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/server_fixture.h"
#include "tests/support/server_layers.h"

namespace triad {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ServerLayerBoundsTest : public ::testing::Test {
 protected:
  ServerOptions Options() const { return LayerServerOptions(directory_.path()); }
  static grpc::Status Load(const TestServer& server, const std::string& name, int64_t version) {
    v1::LoadLayerRequest request;
    request.set_name(name);
    request.set_version(version);
    grpc::ClientContext context;
    v1::LoadLayerResponse response;
    return server.NewLayerStub()->LoadLayer(&context, request, &response);
  }
  static grpc::Status Unload(const TestServer& server, const std::string& name, int64_t version) {
    v1::UnloadLayerRequest request;
    request.set_name(name);
    request.set_version(version);
    grpc::ClientContext context;
    v1::UnloadLayerResponse response;
    return server.NewLayerStub()->UnloadLayer(&context, request, &response);
  }
  static grpc::Status Forward(const TestServer& server, const std::string& name) {
    grpc::ClientContext context;
    v1::ForwardResponse response;
    return server.NewStub()->Forward(&context, MakeForwardRequest(name, /*seed=*/1), &response);
  }

  const TemporaryFolder directory_;
};

TEST_F(ServerLayerBoundsTest, WhatIsBeingPreparedIsNotServed) {
  WriteSmallLayer(directory_.path(), ".staging", 1, 1);
  WriteSmallLayer(directory_.path(), "a/.b.import-x7Gq2a", 1, 1);
  TestServer server(Options());
  EXPECT_EQ(server.Metric("triad_loaded_layers"), 0);
  for (const char* name : {".staging", "a/.b.import-x7Gq2a"}) {
    for (const grpc::Status& status : {Load(server, name, 1), Forward(server, name)}) {
      EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT) << name;
      EXPECT_THAT(status.error_message(), AllOf(HasSubstr("beginning with a dot"), HasSubstr(name)));
    }
  }
}

TEST_F(ServerLayerBoundsTest, WeightsInMemoryAreBounded) {
  for (const int64_t version : {1, 2}) WriteSmallLayer(directory_.path(), "a", version, 1);
  ServerOptions options = Options();
  options.layers = {"a@1"};
  options.max_layer_weights_bytes = MakeSmallLayer(/*seed=*/1)->weights_bytes();
  TestServer server(options);
  const grpc::Status refused = Load(server, "a", 2);
  EXPECT_EQ(refused.error_code(), grpc::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("--max_layer_weights_bytes = "));
  EXPECT_EQ(server.Metric("triad_layer_weights_bytes"), static_cast<double>(options.max_layer_weights_bytes));
  EXPECT_TRUE(Forward(server, "a").ok()) << "what served serves on";
  ASSERT_TRUE(Unload(server, "a", 1).ok());
  const grpc::Status loaded = Load(server, "a", 2);
  EXPECT_TRUE(loaded.ok()) << loaded.error_message();
}

TEST_F(ServerLayerBoundsTest, WeightsPastTheBoundEndTheStart) {
  for (const int64_t version : {1, 2}) WriteSmallLayer(directory_.path(), "a", version, 1);
  ServerOptions options = Options();
  options.listen = {"127.0.0.1:0"};
  options.layers = {"a@1", "a@2"};
  options.max_layer_weights_bytes = MakeSmallLayer(/*seed=*/1)->weights_bytes();
  Log log(LogFormat::kText, stderr);
  const auto server = Server::Start(options, log);
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(std::string(server.status().message()),
              AllOf(HasSubstr("layer a@2"), HasSubstr("--max_layer_weights_bytes = ")));
}

}  // namespace
}  // namespace triad
