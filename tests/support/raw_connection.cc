#include "tests/support/raw_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/check.h"

namespace triad {
namespace {

constexpr timeval kPatience = {.tv_sec = 60, .tv_usec = 0};

int Connect(const std::string& address) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(address, ':');
  int port = 0;
  TRIAD_CHECK(absl::SimpleAtoi(parts.second, &port), "a bound address has a port");
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, parts.first.c_str(), &name.sin_addr);
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  TRIAD_CHECK(connect(connection, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0,
              "a server that listens takes a connection");
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
  return connection;
}

}  // namespace

RawConnection::RawConnection(const std::string& address) : socket_(Connect(address)) {}

RawConnection::~RawConnection() {
  if (socket_ >= 0) close(socket_);
}

bool RawConnection::Send(absl::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::string RawConnection::Receive(size_t size) const {
  std::string bytes;
  char chunk[16384];
  while (bytes.size() < size) {
    const ssize_t got = recv(socket_, chunk, std::min(sizeof(chunk), size - bytes.size()), 0);
    if (got <= 0) break;
    bytes.append(chunk, static_cast<size_t>(got));
  }
  return bytes;
}

std::string RawConnection::ReceiveAll() const { return Receive(std::numeric_limits<size_t>::max()); }

bool RawConnection::IsReadable(std::chrono::milliseconds patience) const {
  pollfd readable = {.fd = socket_, .events = POLLIN, .revents = 0};
  return poll(&readable, 1, static_cast<int>(patience.count())) > 0;
}

void RawConnection::Reset() {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close(std::exchange(socket_, -1));
}

}  // namespace triad
