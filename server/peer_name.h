// Who a call comes from.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace triad {

// The host in what gRPC calls a peer: "ipv4:10.0.0.7:50123" gives "ipv4:10.0.0.7", so that all connections of a host
// are one. All clients of unix sockets are "unix". What it does not know it gives back as it is.
std::string PeerName(absl::string_view peer);

}  // namespace triad
