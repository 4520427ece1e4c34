// Just enough HTTP/2 (RFC 9113) and HPACK (RFC 7541) to begin a gRPC call and to leave it at any point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/support/raw_connection.h"

namespace triad {

enum class Http2Type : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};
inline constexpr uint8_t kEndStream = 1;   // of DATA and HEADERS
inline constexpr uint8_t kAck = 1;         // of SETTINGS and PING
inline constexpr uint8_t kEndHeaders = 4;  // of HEADERS and CONTINUATION

// What a client says first; a SETTINGS frame follows.
inline constexpr absl::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct Http2Frame {
  Http2Type type = Http2Type::kData;
  uint8_t flags = 0;
  uint32_t stream = 0;
  std::string payload;
};
// As it goes over the line.
std::string ToBytes(const Http2Frame& frame);

// A header field as a literal that enters no table. Names and values are shorter than 127 bytes.
std::string HeaderField(absl::string_view name, absl::string_view value);
// The header block that begins a gRPC call of `method`, such as kAttendMethod.
std::string CallHeaders(absl::string_view method);
// Five bytes: a gRPC message of `size` bytes follows.
std::string MessageHead(uint32_t size, bool is_compressed = false);

// One gRPC call on a connection of its own. Not thread-safe.
class Http2Call {
 public:
  // Connects and says hello. `reply_window`: bytes of reply that the server may send before it is allowed more, which
  // never happens.
  explicit Http2Call(const std::string& address, uint32_t reply_window = 65535);

  void SendHeaders(absl::string_view method);
  // The call's bytes, as far as the server makes room for them: fewer than all when it ends the call, or when no room
  // comes for a while. How many.
  size_t SendData(absl::string_view bytes, bool is_end = false);
  // Takes what has come, for at most a minute, until the server has ended the call or closed the connection.
  void AwaitEnd();

  RawConnection& connection() { return connection_; }

 private:
  // Takes one frame. False: the connection is closed.
  bool TakeFrame();
  void TakeSettings(const Http2Frame& frame);

  RawConnection connection_;
  int64_t call_window_ = 65535;        // bytes that may be sent for the call
  int64_t connection_window_ = 65535;  // and over the connection
  int64_t initial_window_ = 65535;     // what a call begins with, as the server sets it
  bool is_ended_ = false;              // by the server
};

}  // namespace triad
