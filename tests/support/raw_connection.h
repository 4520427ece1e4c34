// TCP in plain bytes, for what no client library would say.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace triad {

// Calls block, for at most a minute, so that a broken server fails a test instead of hanging it. Not thread-safe.
class RawConnection {
 public:
  // Connects to `address`, an IPv4 host:port at which a server listens.
  explicit RawConnection(const std::string& address);
  ~RawConnection();
  RawConnection(RawConnection&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}

  // False: the other end takes no more.
  bool Send(absl::string_view bytes) const;
  // Exactly `size` bytes; fewer when the other end closes before.
  std::string Receive(size_t size) const;
  // Until the other end closes.
  std::string ReceiveAll() const;
  // False: nothing has come within `patience`.
  bool IsReadable(std::chrono::milliseconds patience) const;
  // Closes as the system does for a process that was killed with bytes unread: the other end sees a reset.
  void Reset();

 private:
  int socket_;
};

}  // namespace triad
