#include "tests/support/server_fixture.h"

#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/check.h"

namespace triad {
namespace {

std::unique_ptr<Server> StartOrDie(ServerOptions options, Log& log, std::unique_ptr<AttentionKernel> kernel) {
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options, log, std::move(kernel));
  if (!server.ok()) std::fprintf(stderr, "the server cannot start: %s\n", server.status().ToString().c_str());
  TRIAD_CHECK(server.ok(), "the server starts");
  return *std::move(server);
}

// A socket that is connected to `address` (IPv4 host:port).
int Connect(const std::string& address) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(address, ':');
  int port = 0;
  TRIAD_CHECK(absl::SimpleAtoi(parts.second, &port), "a bound address has a port");
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, parts.first.c_str(), &name.sin_addr);
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  TRIAD_CHECK(connect(connection, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0,
              "a server that listens takes a connection");
  return connection;
}

// Everything that `address` answers to `request`, until it closes.
std::string Exchange(const std::string& address, const std::string& request) {
  const int connection = Connect(address);
  std::string reply;
  send(connection, request.data(), request.size(), MSG_NOSIGNAL);
  char chunk[4096];
  for (ssize_t got; (got = recv(connection, chunk, sizeof(chunk), 0)) > 0;) {
    reply.append(chunk, static_cast<size_t>(got));
  }
  close(connection);
  return reply;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = std::filesystem::temp_directory_path() / "triad-test-XXXXXX";
  TRIAD_CHECK(mkdtemp(name.data()) != nullptr, "a temporary folder can be made");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

SilentConnection::SilentConnection(const std::string& address) : socket_(Connect(address)) {}
SilentConnection::~SilentConnection() {
  if (socket_ >= 0) close(socket_);
}

ServerOptions TestServerOptions() {
  ServerOptions options;
  options.listen.clear();
  options.http_listen = "127.0.0.1:0";
  options.threads = 2;
  options.demo_layer = false;
  return options;
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

std::shared_ptr<grpc::Channel> TestServer::NewChannel(grpc::ChannelArguments arguments) const {
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target(), grpc::InsecureChannelCredentials(), arguments);
}

std::unique_ptr<v1::AttentionService::Stub> TestServer::NewStub() const {
  return v1::AttentionService::NewStub(NewChannel());
}

std::unique_ptr<v1::LayerService::Stub> TestServer::NewLayerStub() const {
  return v1::LayerService::NewStub(NewChannel());
}

std::pair<int, std::string> TestServer::Page(const std::string& path) const {
  const std::string reply = Exchange(
      server_->http_address(), absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"));
  int status = 0;
  static_cast<void>(absl::SimpleAtoi(absl::string_view(reply).substr(std::min<size_t>(9, reply.size()), 3), &status));
  const size_t body = reply.find("\r\n\r\n");
  return {status, body == std::string::npos ? "" : reply.substr(body + 4)};
}

double TestServer::Metric(const std::string& series) const {
  const std::string page = Page("/metrics").second;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    double value = 0;
    if (line.substr(0, series.size() + 1) == absl::StrCat(series, " ") &&
        absl::SimpleAtod(line.substr(series.size() + 1), &value)) {
      return value;
    }
  }
  return -1;
}

}  // namespace triad
