// What a client can be told: once, per call, per stream.
//
// Every member of the library's structs has an initialiser, so that designated ones may name a few under -Wextra.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/time/time.h"
#include "triad/retry.h"

namespace triad::client {

// No call waits for longer unless it is told to.
constexpr absl::Duration kDefaultTimeout = absl::Seconds(30);

struct TlsOptions {
  // PEM file of the roots to trust. Empty: gRPC's default roots.
  std::string root_certs_path = {};
  // Checked against the server's certificate instead of the target's host name. Empty: the host name.
  std::string server_name = {};
};

struct ClientOptions {
  // "host:port", "unix:relative/path", "unix:///absolute/path" (or "unix:/absolute/path"), or any other gRPC target.
  // Without a port gRPC would take 443: refused, unless there is `tls`.
  std::string target = "127.0.0.1:8470";
  // Connections to the target; a call takes the one with the fewest calls in flight. One is enough for calls made one
  // at a time; with many in flight, several gained 15-31 % over TCP and 4-8 % over a unix socket.
  int channels = 1;
  // Largest message this client sends or receives. The server has a bound of its own, which is checked too.
  int64_t max_message_bytes = int64_t{256} << 20;
  RetryOptions retry = {};
  // Unset: plaintext, for loopback, unix sockets and networks that encrypt by other means.
  std::optional<TlsOptions> tls = std::nullopt;
};

struct CallOptions {
  // For the call as a whole, retries and pauses included; then it returns DEADLINE_EXCEEDED (at once, when
  // this is not > 0). absl::InfiniteDuration(): no bound.
  absl::Duration timeout = kDefaultTimeout;
  // The call returns CANCELLED soon after a stop is requested: by std::stop_source::request_stop(), from any thread.
  std::stop_token cancel = {};
};

struct StreamOptions {
  // For the stream as a whole; past it the items in flight are lost. Unbounded by default: items have timeouts of their
  // own, and a connection that has died is noticed by keepalive.
  absl::Duration timeout = absl::InfiniteDuration();
  // The stream ends with CANCELLED soon after a stop is requested.
  std::stop_token cancel = {};
};

struct ItemOptions {
  // Counted by the server from the item's arrival; then it is answered with DEADLINE_EXCEEDED. Must be > 0.
  // absl::InfiniteDuration(): the stream's own bound.
  absl::Duration timeout = kDefaultTimeout;
};

}  // namespace triad::client
