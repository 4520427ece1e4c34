// A whole server in this process, for tests through a real channel.
#pragma once

#include <grpcpp/channel.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "core/attention/attention_kernel.h"
#include "server/log.h"
#include "server/server.h"
#include "server/server_options.h"
#include "tests/support/server_pages.h"
#include "triad/v1/attention.grpc.pb.h"
#include "triad/v1/layer.grpc.pb.h"

namespace triad {

// An empty folder of the test's own, removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Options that suit tests: two compute threads, free ports, no layers, no bound for one address, since a test's clients
// have but one. An empty `listen` is a Unix socket in a folder of the test's own.
ServerOptions TestServerOptions();
// With the layers below `layer_dir`, which clients may load and unload.
ServerOptions LayerServerOptions(const std::filesystem::path& layer_dir);

// A connection to `target` of its own, without message limits.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& target);

// Starts in the constructor, which ends the process with the reason when it cannot; stops and removes its folder in the
// destructor.
class TestServer {
 public:
  explicit TestServer(ServerOptions options = TestServerOptions(), std::unique_ptr<AttentionKernel> kernel = nullptr);
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  Server& server() { return *server_; }
  // Address of the first listener, as gRPC and the client library take it.
  const std::string& target() const { return server_->addresses().front(); }
  // Removed at the end.
  const std::filesystem::path& folder() const { return folder_.path(); }

  std::shared_ptr<grpc::Channel> NewChannel() const { return OpenChannel(target()); }
  std::unique_ptr<v1::AttentionService::Stub> NewStub() const;
  std::unique_ptr<v1::LayerService::Stub> NewLayerStub() const;

  // As GetPage and ReadMetric (server_pages.h).
  std::pair<int, std::string> Page(const std::string& path) const { return GetPage(server_->http_address(), path); }
  double Metric(const std::string& series) const { return ReadMetric(server_->http_address(), series); }
  // Destroys the server; nothing but the folder is left.
  void Stop() { server_.reset(); }

 private:
  const TemporaryFolder folder_;
  std::FILE* const sink_;  // takes the log
  Log log_;
  std::unique_ptr<Server> server_;
};

}  // namespace triad
