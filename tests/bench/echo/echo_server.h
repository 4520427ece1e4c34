// The least that a gRPC server can do with a request: the yardstick for Triad's own serving.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace triad {

// Answers every Attend with `reply`, unread and unparsed, over the transport that Triad itself uses: same channel
// arguments, same allocator, callback API, finished in the reaction. Returns after SIGTERM. Call before there are
// threads. Errors: `address` cannot be listened on.
absl::Status ServeEcho(const std::string& address, const std::string& reply);

}  // namespace triad
