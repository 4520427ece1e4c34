#include "server/peer_name.h"

#include "absl/strings/match.h"

namespace triad {

std::string PeerName(absl::string_view peer) {
  if (absl::StartsWith(peer, "unix:") || absl::StartsWith(peer, "unix-abstract:")) return "unix";
  const bool is_internet = absl::StartsWith(peer, "ipv4:") || absl::StartsWith(peer, "ipv6:");
  const size_t port = peer.rfind(':');
  // The first colon ends the family: an address that has no other has no port. (IPv6 comes in brackets, plain or
  // escaped as %5B, so that its last colon is the port's.)
  if (!is_internet || port == peer.find(':')) return std::string(peer);
  return std::string(peer.substr(0, port));
}

}  // namespace triad
