// Refuses what cannot succeed before it is sent.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "client/src/runtime.h"
#include "triad/connection.h"

namespace triad::client {

struct LimitOptions {
  int64_t max_message_bytes = 0;  // this client's own
  std::string target;             // named in messages about the server's
  // Limits older than this refuse nothing before they have been asked for again: the server may have been restarted
  // with others, which takes about as long.
  absl::Duration trusted_for = absl::Seconds(1);
};

// A connection that checks requests by check_request.h before `next` sees them. The server's limits are asked for by
// the first call that needs them, and kept; several first calls at a time may each ask. Before limits that are old
// refuse a request they are asked for again, once: by a stream too, whose Send then waits for the answer. If asking
// fails, so does the call, with the same status; a server that does not know GetServerInfo (UNIMPLEMENTED) has no
// limits that are known. `runtime` tells how old they are, and keeps callbacks of Async functions from running within
// them when a request is refused at once.
std::shared_ptr<Connection> MakeLimitCheckingConnection(std::shared_ptr<Connection> next, const LimitOptions& options,
                                                        std::shared_ptr<Runtime> runtime);

}  // namespace triad::client
