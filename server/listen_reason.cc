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
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/unix_socket.h"

namespace triad {
namespace {

constexpr char kWasTaken[] = "the address was taken until a moment ago";

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

// Of "host:port", what is after the last colon.
absl::string_view PortOf(absl::string_view address) { return address.substr(address.rfind(':') + 1); }

using FoundAddresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// What `host` is, without brackets; null, and why in `error`, when that is unknown.
FoundAddresses Find(absl::string_view host, absl::string_view port, int flags, int& error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | flags;  // "*" is every address, not loopback
  addrinfo* found = nullptr;
  error = getaddrinfo(std::string(host).c_str(), std::string(port).c_str(), &hints, &found);
  return FoundAddresses(error == 0 ? found : nullptr, freeaddrinfo);
}

// The one spelling of what `host` means as a number: "127.0.0.1:80" for "127.1" and 80, "[::1]:80". Empty: it is a
// name.
std::string PlainAddress(absl::string_view host, absl::string_view port) {
  int error = 0;
  const FoundAddresses found = Find(host, port, AI_NUMERICHOST, error);
  char text[NI_MAXHOST];
  if (found == nullptr ||
      getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  return found->ai_family == AF_INET6 ? absl::StrCat("[", text, "]:", port) : absl::StrCat(text, ":", port);
}

std::string WhyNotHostPort(const std::string& address) {
  absl::string_view host = absl::string_view(address).substr(0, address.rfind(':'));
  const absl::string_view port = PortOf(address);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  int unknown = 0;
  const FoundAddresses found = Find(host, port, /*flags=*/0, unknown);
  if (found == nullptr) return gai_strerror(unknown);
  for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
    if (const int error = TryToListen(each->ai_addr, each->ai_addrlen); error != 0) return std::strerror(error);
  }
  const std::string plain = PlainAddress(host, port);
  if (plain.empty() || plain == address) return kWasTaken;
  return absl::StrCat("the library that listens does not take it in this form; write ", plain);
}

}  // namespace

std::string WhyItCannotListen(const std::string& address, const std::vector<std::string>& others) {
  if (const std::optional<std::string> path = UnixSocketPath(address)) {
    const int error = TryUnix(*path);
    return error == 0 ? kWasTaken : std::strerror(error);
  }
  std::string reason = WhyNotHostPort(address);
  if (reason != kWasTaken && reason != std::strerror(EADDRINUSE)) return reason;
  for (const std::string& other : others) {
    if (UnixSocketPath(other) || PortOf(other) != PortOf(address) || PortOf(address) == "0") continue;
    return absl::StrCat(reason, "; this server was told to listen on ", other, " too");
  }
  return reason;
}

}  // namespace triad
