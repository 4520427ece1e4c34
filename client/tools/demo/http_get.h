// A page from the server's HTTP port.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace triad::tools {

// The body of http://<host_port><path>, for small pages of a server that one trusts. Blocks for at most 5 s per step.
// INVALID_ARGUMENT: not host:port; UNAVAILABLE: no connection, no answer in time, or one that is not 200;
// RESOURCE_EXHAUSTED: more than 4 MiB.
absl::StatusOr<std::string> HttpGet(const std::string& host_port, absl::string_view path);

}  // namespace triad::tools
