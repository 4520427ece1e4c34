#include "server/peer_name.h"

#include <gtest/gtest.h>

namespace triad {
namespace {

TEST(PeerNameTest, IsTheAddressWithoutItsPort) {
  const std::pair<const char*, const char*> cases[] = {
      {"ipv4:10.0.0.7:50123", "ipv4:10.0.0.7"},
      {"ipv6:%5B2001:db8::7%5D:50123", "ipv6:%5B2001:db8::7%5D"},
      {"ipv6:[::1]:50123", "ipv6:[::1]"},
      {"unix:", "unix"},
      {"unix:/run/triad.sock", "unix"},
      {"unix-abstract:triad", "unix"},
      {"ipv4:", "ipv4:"},
      {"", ""},
      {"something else:1", "something else:1"},
  };
  for (const auto& [peer, name] : cases) EXPECT_EQ(PeerName(peer), name);
}

}  // namespace
}  // namespace triad
