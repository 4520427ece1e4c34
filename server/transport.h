// The gRPC server: how it listens, what it refuses before any handler sees it, health and reflection.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/server_options.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace triad {

struct NamedService {
  std::string name;  // full
  grpc::Service& service;
};

class Transport {
 public:
  // Listens on every options.listen. Borrows the services. Health is SERVING from the start for "" and each of them.
  // FAILED_PRECONDITION or INVALID_ARGUMENT: an address cannot be listened on, and why.
  static absl::StatusOr<std::unique_ptr<Transport>> Start(const ServerOptions& options,
                                                          const std::vector<NamedService>& services);

  // As Shutdown without grace.
  ~Transport();

  // As given, with the ports that were bound.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // From here on health is NOT_SERVING, for checks and watches.
  void SetNotServing();

  // Closes the listeners; waits up to `grace` for calls to end (an open health watch never does by itself), then
  // cancels what is left, waits for its reactions, and returns. No reaction runs after that. Once.
  void Shutdown(absl::Duration grace);

 private:
  Transport(std::unique_ptr<grpc::Server> server, std::vector<std::string> addresses);

  const std::unique_ptr<grpc::Server> server_;
  const std::vector<std::string> addresses_;
  bool is_shut_down_ = false;
};

}  // namespace triad
