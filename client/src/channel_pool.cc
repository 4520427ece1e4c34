#include "client/src/channel_pool.h"

#include <exception>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <thread>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/src/callback_scope.h"
#include "client/src/check_target.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace triad::client {
namespace {

constexpr int kMaxChannels = 64;  // connections, each with its own buffers; past a few they gain nothing

// The server closes connections that ping more often than every 30 s.
constexpr int kKeepaliveTimeMs = 60'000;
constexpr int kKeepaliveTimeoutMs = 20'000;
// gRPC's default of 1 s would let all attempts of a call fail on a channel that waits to reconnect.
constexpr int kInitialReconnectBackoffMs = 100;
constexpr int kMaxReconnectBackoffMs = 5'000;

// gRPC's library ends when the last who uses it lets go of a channel, and that waits for its poller: up to 10 s after a
// message that did not fit the socket's buffer at once. So the first pool holds it for the rest of the process.
void KeepGrpc() {
  static const bool is_kept = [] {
    grpc_init();
    return true;
  }();
  static_cast<void>(is_kept);
}

absl::Status CheckOptions(const ClientOptions& options) {
  if (absl::Status status = CheckTarget(options.target, options.tls.has_value()); !status.ok()) return status;
  if (options.channels < 1 || options.channels > kMaxChannels) {
    return absl::InvalidArgumentError(
        absl::StrCat("ClientOptions::channels must lie between 1 and ", kMaxChannels, "; was ", options.channels));
  }
  constexpr int64_t kLargestMessage = std::numeric_limits<int32_t>::max();  // protobuf's end
  if (options.max_message_bytes < 1 || options.max_message_bytes > kLargestMessage) {
    return absl::InvalidArgumentError(absl::StrCat("ClientOptions::max_message_bytes must lie between 1 and ",
                                                   kLargestMessage, "; was ", options.max_message_bytes));
  }
  const RetryOptions& retry = options.retry;
  if (retry.max_attempts < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("RetryOptions::max_attempts must be >= 1; was ", retry.max_attempts));
  }
  if (!(retry.multiplier >= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("RetryOptions::multiplier must be >= 1; was ", retry.multiplier));
  }
  if (retry.initial_backoff < absl::ZeroDuration() || retry.max_backoff < absl::ZeroDuration()) {
    return absl::InvalidArgumentError("RetryOptions::initial_backoff and max_backoff must be >= 0");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(const ClientOptions& options) {
  if (!options.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions ssl;
  const std::string& path = options.tls->root_certs_path;
  if (!path.empty()) {
    std::ifstream file(path, std::ios::binary);
    ssl.pem_root_certs.assign(std::istreambuf_iterator<char>(file), {});
    if (!file.is_open() || ssl.pem_root_certs.empty()) {
      return absl::NotFoundError(absl::StrCat("TlsOptions::root_certs_path must be a readable PEM file; was ", path));
    }
  }
  return grpc::SslCredentials(ssl);
}

grpc::ChannelArguments MakeArguments(const ClientOptions& options, int index) {
  grpc::ChannelArguments arguments;
  // gRPC shares a connection among channels with the same arguments; this one makes them differ.
  arguments.SetInt("triad.channel_index", index);
  arguments.SetMaxSendMessageSize(static_cast<int>(options.max_message_bytes));
  arguments.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // RetryingConnection does it; retry.h says why
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // else a call that only waits stops pinging after two
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kInitialReconnectBackoffMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectBackoffMs);
  arguments.SetUserAgentPrefix("triad-client");
  if (options.tls && !options.tls->server_name.empty()) arguments.SetSslTargetNameOverride(options.tls->server_name);
  return arguments;
}

}  // namespace

size_t PickChannel(absl::Span<const int64_t> in_flight, uint64_t turn) {
  const size_t first = turn % in_flight.size();
  size_t best = first;
  for (size_t step = 1; step < in_flight.size(); ++step) {
    const size_t index = (first + step) % in_flight.size();
    if (in_flight[index] < in_flight[best]) best = index;
  }
  return best;
}

absl::StatusOr<std::shared_ptr<ChannelPool>> ChannelPool::Create(const ClientOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  KeepGrpc();
  absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> credentials = MakeCredentials(options);
  if (!credentials.ok()) return credentials.status();
  std::vector<Slot> slots;
  for (int index = 0; index < options.channels; ++index) {
    auto channel = grpc::CreateCustomChannel(options.target, *credentials, MakeArguments(options, index));
    auto attention = std::make_unique<AttentionMethods>(channel);
    auto layers = v1::LayerService::NewStub(channel);
    slots.push_back({std::move(channel), std::move(attention), std::move(layers)});
  }
  return std::shared_ptr<ChannelPool>(new ChannelPool(std::move(slots)), Destroy);
}

void ChannelPool::Destroy(ChannelPool* pool) noexcept {
  const auto destroy = [pool] { std::unique_ptr<ChannelPool> last(pool); };
  if (!CallbackScope::IsActive()) return destroy();
  try {
    std::thread(destroy).detach();
  } catch (const std::exception&) {  // std::system_error or std::bad_alloc; `pool` is left as it is
  }
}

ChannelPool::Lease ChannelPool::Pick() {
  absl::InlinedVector<int64_t, 8> in_flight;
  for (const auto& count : in_flight_) in_flight.push_back(count.load(std::memory_order_relaxed));
  return Lease(shared_from_this(), PickChannel(in_flight, turn_.fetch_add(1, std::memory_order_relaxed)));
}

}  // namespace triad::client
