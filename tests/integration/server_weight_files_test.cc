// Weight files that are torn, lie about themselves, cannot be read, or change while they are: LoadLayer refuses them
// in words, and what serves goes on serving.
#include <gmock/gmock.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "tests/support/server_fixture.h"
#include "tests/support/server_layers.h"

namespace triad {
namespace {

using ::testing::HasSubstr;

constexpr char kWeights[] = "weights.safetensors";

// Version 1 of layer "a" serves; a test spoils version 2.
class ServerWeightFilesTest : public ::testing::Test {
 protected:
  ServerWeightFilesTest() : server_(Options()) {
    WriteSmallLayer(directory_.path(), "a", 2, /*seed=*/2);
    std::ifstream file(WeightsPath(), std::ios::binary);
    good_.assign(std::istreambuf_iterator<char>(file), {});
    header_bytes_ = good_.find("}}") + 2 - sizeof(uint64_t);
  }

  ServerOptions Options() const {
    WriteSmallLayer(directory_.path(), "a", 1, /*seed=*/1);
    ServerOptions options = LayerServerOptions(directory_.path());
    options.layers = {"a@1"};
    return options;
  }
  std::filesystem::path WeightsPath() const { return directory_.path() / "a/2" / kWeights; }
  void Write(const std::string& bytes) const { WriteLayerFile(directory_.path(), "a/2", kWeights, bytes); }
  // The good file with the first `from` of its header replaced by a `to` of the same length.
  std::string WithHeader(const std::string& from, const std::string& to) const {
    std::string bytes = good_;
    const size_t at = bytes.find(from);
    EXPECT_TRUE(at < header_bytes_ && from.size() == to.size()) << from;
    return bytes.replace(at, from.size(), to);
  }

  grpc::Status Load() const {
    v1::LoadLayerRequest request;
    request.set_name("a");
    request.set_version(2);
    grpc::ClientContext context;
    v1::LoadLayerResponse response;
    return server_.NewLayerStub()->LoadLayer(&context, request, &response);
  }
  void ExpectServes(int64_t version) const {
    grpc::ClientContext context;
    v1::ForwardResponse response;
    const grpc::Status status = server_.NewStub()->Forward(&context, MakeForwardRequest("a", 1), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.version(), version);
  }
  void ExpectRefused(const std::string& what, const std::string& word = kWeights) const {
    SCOPED_TRACE(what);
    const grpc::Status status = Load();
    EXPECT_EQ(status.error_code(), grpc::FAILED_PRECONDITION) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(word));
    ExpectServes(/*version=*/1);
  }

  const TemporaryFolder directory_;
  TestServer server_;
  std::string good_;         // a file that loads
  size_t header_bytes_ = 0;  // of it
};

TEST_F(ServerWeightFilesTest, TornFilesAreRefused) {
  for (size_t size = 0; size < good_.size(); size += size < header_bytes_ ? 61 : 331) {
    Write(good_.substr(0, size));
    ExpectRefused("torn at " + std::to_string(size));
  }
  Write(good_);
  EXPECT_TRUE(Load().ok());
  ExpectServes(/*version=*/2);
}

TEST_F(ServerWeightFilesTest, HeadersThatLieAreRefused) {
  std::string longer = good_;
  ++longer[0];
  std::string endless = good_;
  endless.replace(0, 8, std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8));
  for (const auto& [what, bytes] :
       std::map<std::string, std::string>{{"a header one byte longer than it is", longer},
                                          {"a header of 2^63 - 1 bytes", endless},
                                          {"a tensor that begins inside the one before", WithHeader("[64,", "[60,")},
                                          {"a tensor that ends before it begins", WithHeader("[0,64]", "[9,04]")},
                                          {"a tensor past the end of the file", WithHeader("[0,64]", "[0,99]")},
                                          {"a type that is none", WithHeader("\"F32\"", "\"F99\"")},
                                          {"a shape that is larger than its bytes", WithHeader("[16]", "[99]")}}) {
    Write(bytes);
    ExpectRefused(what);
  }
}

TEST_F(ServerWeightFilesTest, WhatIsNoFileIsRefused) {
  const std::filesystem::path path = WeightsPath();
  const std::map<std::string, std::function<void()>> makers = {
      {"a folder", [&] { std::filesystem::create_directory(path); }},
      {"a pipe that nobody writes", [&] { ASSERT_EQ(mkfifo(path.c_str(), 0600), 0); }},
      {"a link to itself", [&] { std::filesystem::create_symlink(kWeights, path); }}};
  for (const auto& [what, make] : makers) {
    std::filesystem::remove(path);
    make();
    ExpectRefused(what);
  }
  std::filesystem::remove(path);
  EXPECT_EQ(Load().error_code(), grpc::NOT_FOUND) << "no file at all";
  ExpectServes(/*version=*/1);
}

TEST_F(ServerWeightFilesTest, AFileThatShrinksAndGrowsWhileItIsReadCannotEndTheServer) {
  std::atomic<bool> done = false;
  std::thread writer([&] {
    while (!done) {
      std::filesystem::resize_file(WeightsPath(), good_.size() / 2);
      Write(good_);
    }
  });
  for (int i = 0; i < 100; ++i) {
    const grpc::Status status = Load();
    EXPECT_TRUE(status.ok() || status.error_code() == grpc::FAILED_PRECONDITION) << status.error_message();
    ExpectServes(/*version=*/status.ok() ? 2 : 1);
    v1::UnloadLayerRequest unload;
    unload.set_name("a");
    unload.set_version(2);
    grpc::ClientContext context;
    v1::UnloadLayerResponse response;
    server_.NewLayerStub()->UnloadLayer(&context, unload, &response);
  }
  done = true;
  writer.join();
  EXPECT_TRUE(Load().ok());
}

}  // namespace
}  // namespace triad
