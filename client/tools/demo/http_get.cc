#include "client/tools/demo/http_get.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace triad::tools {
namespace {

constexpr timeval kStepTimeout = {.tv_sec = 5, .tv_usec = 0};
constexpr size_t kMaxBytes = 4 << 20;

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// A connected socket, or -1.
int ConnectTo(const std::string& host, const std::string& port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return -1;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    const int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol);
    if (fd < 0) continue;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kStepTimeout, sizeof(kStepTimeout));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kStepTimeout, sizeof(kStepTimeout));
    if (connect(fd, address->ai_addr, address->ai_addrlen) == 0) return fd;
    close(fd);
  }
  return -1;
}

}  // namespace

absl::StatusOr<std::string> HttpGet(const std::string& host_port, absl::string_view path) {
  const size_t colon = host_port.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("must be host:port; was ", host_port));
  }
  const auto unavailable = [&](absl::string_view reason) {
    return absl::UnavailableError(absl::StrCat("http://", host_port, path, ": ", reason));
  };
  const Socket connection(ConnectTo(host_port.substr(0, colon), host_port.substr(colon + 1)));
  if (connection.get() < 0) return unavailable("no connection");
  // HTTP/1.0: the server closes at the end, so the body needs no decoding.
  const std::string request = absl::StrCat("GET ", path, " HTTP/1.0\r\nHost: ", host_port, "\r\n\r\n");
  if (send(connection.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
    return unavailable("the request was not taken");
  }
  std::string reply;
  char buffer[4096];
  ssize_t received = 0;
  while ((received = recv(connection.get(), buffer, sizeof(buffer), 0)) > 0) {
    reply.append(buffer, static_cast<size_t>(received));
    if (reply.size() > kMaxBytes) return absl::ResourceExhaustedError(absl::StrCat(host_port, path, " is too large"));
  }
  const size_t end_of_head = reply.find("\r\n\r\n");
  if (received < 0 || end_of_head == std::string::npos) return unavailable("no whole answer");
  const std::string status_line = reply.substr(0, reply.find("\r\n"));
  if (!absl::StrContains(status_line, " 200")) return unavailable(status_line);
  return reply.substr(end_of_head + 4);
}

}  // namespace triad::tools
