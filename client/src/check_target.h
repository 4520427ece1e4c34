// What a client is told to connect to, looked at before gRPC guesses.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace triad::client {

// INVALID_ARGUMENT: gRPC would take `target` for a host's name, or for port 443, and nobody can have meant that: a URL,
// a list, a port past 65535, and unless `tls` no port. Whatever has one of gRPC's schemes is left to gRPC.
absl::Status CheckTarget(const std::string& target, bool tls);

}  // namespace triad::client
