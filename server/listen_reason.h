// Why nobody can listen somewhere: libraries that listen do not say.
#pragma once

#include <string>
#include <vector>

namespace triad {

// What keeps this process from listening on `address`, a "unix:path" or "host:port", in the system's words: asked by
// doing it, for a moment. Where that works, the library does not take what the system does, and the answer has the
// address as both do. `others`: where this process was told to listen too, which may be the reason. Blocks for the
// resolution of a host's name.
std::string WhyItCannotListen(const std::string& address, const std::vector<std::string>& others = {});

}  // namespace triad
