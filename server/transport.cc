#include "server/transport.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/listen_reason.h"
#include "server/unix_socket.h"

namespace triad {
namespace {

// Clients may ping every 30 s, with or without calls; gRPC counts a ping that comes earlier than this against them (its
// own default is 300 s, and a third offence ends the connection), so there are 5 s for a timer that runs early.
constexpr auto kMinClientPingInterval = absl::Seconds(25);
// A peer that vanished without a word is noticed within these two together.
constexpr auto kKeepaliveTime = absl::Seconds(60);
constexpr auto kKeepaliveTimeout = absl::Seconds(20);
// A connection that does not speak HTTP/2 by then is closed.
constexpr auto kHandshakeTimeout = absl::Seconds(20);

int Milliseconds(absl::Duration duration) {
  const int64_t ms = absl::ToInt64Milliseconds(duration);
  return static_cast<int>(std::min<int64_t>(ms, std::numeric_limits<int>::max()));
}

void Configure(const ServerOptions& options, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  builder.SetMaxSendMessageSize(static_cast<int>(options.max_message_bytes));
  // The limits above count compressed bytes: a few MB of gzip may unpack into a gigabyte. So nothing compressed is
  // taken in.
  for (int algorithm = GRPC_COMPRESS_NONE + 1; algorithm < GRPC_COMPRESS_ALGORITHMS_COUNT; ++algorithm) {
    builder.SetCompressionAlgorithmSupportStatus(static_cast<grpc_compression_algorithm>(algorithm), false);
  }
  // And a message longer than the limit would be buffered whole before it is refused.
  builder.SetResourceQuota(grpc::ResourceQuota("triad").Resize(static_cast<size_t>(options.grpc_memory_bytes)));

  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, MaxCallsPerConnectionOf(options));
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Milliseconds(kHandshakeTimeout));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             Milliseconds(kMinClientPingInterval));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(kKeepaliveTime));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(kKeepaliveTimeout));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA,
                             0);  // no bound: keepalive must work on idle streams
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, Milliseconds(options.max_connection_age));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, Milliseconds(options.max_connection_age_grace));
  // Two servers on one port would share its connections at random; the second one must fail to start instead.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

// For its lifetime gRPC logs nothing, on no thread: it would say in lines of its own, in whatever format ours are, that
// it cannot listen somewhere.
class QuietGrpc {
 public:
  QuietGrpc() {
    gpr_set_log_function([](gpr_log_func_args*) {});
  }
  ~QuietGrpc() { gpr_set_log_function(nullptr); }  // its own again
  QuietGrpc(const QuietGrpc&) = delete;
  QuietGrpc& operator=(const QuietGrpc&) = delete;
};

std::unique_ptr<grpc::Server> BuildQuietly(grpc::ServerBuilder& builder) {
  const QuietGrpc quiet;
  return builder.BuildAndStart();
}

// The addresses of `options` without that of `at`.
std::vector<std::string> OtherAddresses(const ServerOptions& options, size_t at) {
  std::vector<std::string> others = options.listen;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(at));
  if (!options.http_listen.empty()) others.push_back(options.http_listen);
  return others;
}

std::string BoundAddress(const std::string& address, int port) {
  if (UnixSocketPath(address)) return address;
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> Transport::Start(const ServerOptions& options,
                                                            const std::vector<NamedService>& services) {
  // protobuf writes a line about every string that is not UTF-8, and what clients send must not fill the log. The
  // message is refused all the same.
  google::protobuf::SetLogHandler(nullptr);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  Configure(options, builder);
  for (const NamedService& named : services) builder.RegisterService(&named.service);
  std::vector<int> ports(options.listen.size(), 0);
  for (size_t i = 0; i < options.listen.size(); ++i) {
    if (const std::optional<std::string> path = UnixSocketPath(options.listen[i])) {
      // gRPC itself would take the path from a server that is alive.
      if (absl::Status status = RemoveStaleSocket(*path); !status.ok()) return status;
    }
    builder.AddListeningPort(options.listen[i], grpc::InsecureServerCredentials(), &ports[i]);
  }
  std::unique_ptr<grpc::Server> server = BuildQuietly(builder);
  // gRPC binds in order and stops at the first that fails, whose port stays 0.
  const auto failed = std::find(ports.begin(), ports.end(), 0);
  if (failed != ports.end()) {
    const size_t at = failed - ports.begin();
    return absl::FailedPreconditionError(
        absl::StrCat("--listen=", options.listen[at],
                     ": cannot listen there: ", WhyItCannotListen(options.listen[at], OtherAddresses(options, at))));
  }
  if (server == nullptr) return absl::InternalError("gRPC cannot start a server");
  std::vector<std::string> addresses;
  for (size_t i = 0; i < ports.size(); ++i) addresses.push_back(BoundAddress(options.listen[i], ports[i]));
  for (const NamedService& named : services) {
    server->GetHealthCheckService()->SetServingStatus(named.name, true);
  }
  return std::unique_ptr<Transport>(new Transport(std::move(server), std::move(addresses)));
}

Transport::Transport(std::unique_ptr<grpc::Server> server, std::vector<std::string> addresses)
    : server_(std::move(server)), addresses_(std::move(addresses)) {}

Transport::~Transport() { Shutdown(absl::ZeroDuration()); }

void Transport::SetNotServing() { server_->GetHealthCheckService()->Shutdown(); }

void Transport::Shutdown(absl::Duration grace) {
  if (is_shut_down_) return;
  is_shut_down_ = true;
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  server_->Wait();
}

}  // namespace triad
