// Why nobody can listen somewhere: libraries that listen do not say.
#pragma once

#include <string>

namespace triad {

// What keeps this process from listening on `address`, a "unix:path" or "host:port", in the system's words: asked by
// doing it, for a moment. Blocks for the resolution of a host's name.
std::string WhyItCannotListen(const std::string& address);

}  // namespace triad
