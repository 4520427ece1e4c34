// Socket files of unix: addresses.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"

namespace triad {

// The path of "unix:path" and "unix:///path"; nullopt for any other address.
std::optional<std::string> UnixSocketPath(const std::string& address);

// Makes way for a listener at `path`: removes a socket file that nobody listens on, which a killed server leaves
// behind. Nothing when there is no file. FAILED_PRECONDITION: a server listens there, or the file is no socket.
// INVALID_ARGUMENT: longer than a socket's name can be.
absl::Status RemoveStaleSocket(const std::string& path);

}  // namespace triad
