#include "server/listen_reason.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/unix_socket.h"

namespace triad {
namespace {

// errno; 0 when it worked, which binds no longer than the call.
int TryToListen(const sockaddr* address, socklen_t size) {
  const int listener = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return errno;
  const absl::Cleanup close_listener = [listener] { close(listener); };
  const int yes = 1;  // as gRPC does: connections that linger are no fault
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  return bind(listener, address, size) == 0 && listen(listener, /*backlog=*/1) == 0 ? 0 : errno;
}

int TryUnix(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path)) return ENAMETOOLONG;
  std::memcpy(name.sun_path, path.data(), path.size());
  const int error = TryToListen(reinterpret_cast<const sockaddr*>(&name), sizeof(name));
  if (error == 0) unlink(path.c_str());
  return error;
}

}  // namespace

std::string WhyItCannotListen(const std::string& address) {
  constexpr char kCan[] = "the address was taken until a moment ago, or is given twice";
  if (const std::optional<std::string> path = UnixSocketPath(address)) {
    const int error = TryUnix(*path);
    return error == 0 ? kCan : std::strerror(error);
  }
  const size_t colon = address.rfind(':');
  absl::string_view host = absl::string_view(address).substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int unknown = getaddrinfo(std::string(host).c_str(), address.substr(colon + 1).c_str(), &hints, &found);
  if (unknown != 0) return gai_strerror(unknown);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (const int error = TryToListen(each->ai_addr, each->ai_addrlen); error != 0) return std::strerror(error);
  }
  return kCan;
}

}  // namespace triad
