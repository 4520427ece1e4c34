// The composition root: makes every part of a server from its options, joins them, and takes them apart in order.
//
//   absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options, log);
//   ... (*server)->addresses() ...
//   const bool everything_answered = (*server)->Drain();
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/attention_kernel.h"
#include "server/log.h"
#include "server/server_options.h"

namespace triad {

class Server {
 public:
  // Starts everything and returns when it is ready: HTTP pages first (/readyz says 503), then kernels, warm-up,
  // layers, and the gRPC listeners last. `options` are resolved here. `log` outlives the server. `kernel` answers
  // KERNEL_AUTO, without warm-up; null for the fast one of this machine. Errors name what could not be had: an address,
  // threads, an instruction set, a layer.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options, Log& log,
                                                       std::unique_ptr<AttentionKernel> kernel = nullptr);

  // Stops at once: what is in flight is cancelled. Drain first. Waits for a load of a layer that runs, which nothing
  // can stop and which uses the server's memory.
  ~Server();

  // Where it listens, with the ports that were bound; "" when there are no HTTP pages.
  const std::vector<std::string>& addresses() const;
  const std::string& http_address() const;

  // First half of Drain: health and /readyz say not serving, new work is refused with UNAVAILABLE, streams are told to
  // end. Returns at once.
  void BeginDrain();

  // Drains: BeginDrain, waits until everything accepted is answered, then stops listening. True: everything was
  // answered. False: drain_timeout passed first, and the rest was answered with UNAVAILABLE: between two work items, or
  // for a load that runs at once, whose result is then told to nobody. Replies that nobody reads were cut off. Blocks
  // for at most drain_timeout, a work item and a second. Once.
  //
  // After false, a process that is to end leaves by std::_Exit, as triad-server does: everyone has been answered, and
  // the destructor might wait for that load.
  bool Drain();

  // Work that is here and not yet answered.
  int64_t in_flight_requests() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace triad
