#include "triad/client.h"

#include "client/src/channel_pool.h"
#include "client/src/grpc_connection.h"
#include "client/src/limit_checking_connection.h"
#include "client/src/retrying_connection.h"
#include "client/src/runtime.h"

namespace triad::client {

absl::StatusOr<std::shared_ptr<Connection>> MakeConnection(const ClientOptions& options) {
  absl::StatusOr<std::shared_ptr<ChannelPool>> pool = ChannelPool::Create(options);
  if (!pool.ok()) return pool.status();
  const std::shared_ptr<Runtime> runtime = RealRuntime();
  std::shared_ptr<Connection> connection = MakeGrpcConnection(*std::move(pool));
  connection = MakeRetryingConnection(std::move(connection), options.retry, runtime);
  return MakeLimitCheckingConnection(
      std::move(connection), {.max_message_bytes = options.max_message_bytes, .target = options.target}, runtime);
}

absl::StatusOr<Client> Client::Create(const ClientOptions& options) {
  absl::StatusOr<std::shared_ptr<Connection>> connection = MakeConnection(options);
  if (!connection.ok()) return connection.status();
  return Client(*std::move(connection));
}

}  // namespace triad::client
