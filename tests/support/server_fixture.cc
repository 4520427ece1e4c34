#include "tests/support/server_fixture.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace triad {
namespace {

std::unique_ptr<Server> StartOrDie(ServerOptions options, Log& log, std::unique_ptr<AttentionKernel> kernel) {
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options, log, std::move(kernel));
  if (!server.ok()) std::fprintf(stderr, "the server cannot start: %s\n", server.status().ToString().c_str());
  TRIAD_CHECK(server.ok(), "the server starts");
  return *std::move(server);
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = std::filesystem::temp_directory_path() / "triad-test-XXXXXX";
  TRIAD_CHECK(mkdtemp(name.data()) != nullptr, "a temporary folder can be made");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

ServerOptions TestServerOptions() {
  ServerOptions options;
  options.listen.clear();
  options.http_listen = "127.0.0.1:0";
  options.threads = 2;
  options.max_peer_in_flight_requests = options.max_peer_in_flight_bytes = 0;
  options.demo_layer = false;
  return options;
}

ServerOptions LayerServerOptions(const std::filesystem::path& layer_dir) {
  ServerOptions options = TestServerOptions();
  options.layer_dir = layer_dir.string();
  options.allow_layer_admin = true;
  return options;
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

TestServer::TestServer(ServerOptions options, std::unique_ptr<AttentionKernel> kernel)
    : sink_(std::fopen("/dev/null", "w")), log_(LogFormat::kText, sink_) {
  if (options.listen.empty()) options.listen = {absl::StrCat("unix:", (folder() / "server.sock").string())};
  server_ = StartOrDie(std::move(options), log_, std::move(kernel));
}

TestServer::~TestServer() {
  server_.reset();
  std::fclose(sink_);
}

std::unique_ptr<v1::AttentionService::Stub> TestServer::NewStub() const {
  return v1::AttentionService::NewStub(NewChannel());
}

std::unique_ptr<v1::LayerService::Stub> TestServer::NewLayerStub() const {
  return v1::LayerService::NewStub(NewChannel());
}

}  // namespace triad
