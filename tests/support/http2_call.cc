#include "tests/support/http2_call.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"

namespace triad {
namespace {

constexpr uint32_t kCall = 1;        // its stream
constexpr size_t kMaxFrame = 16384;  // of a peer that has set nothing else
constexpr size_t kFrameHead = 9;
constexpr uint16_t kInitialWindow = 4;  // a setting
// No room for so long: the server wants no more for now. Only how much is sent depends on it.
constexpr std::chrono::milliseconds kRoomPatience{50};

std::string BigEndian(uint64_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) text.push_back(static_cast<char>(value >> shift & 0xff));
  return text;
}

uint64_t FromBigEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

}  // namespace

std::string ToBytes(const Http2Frame& frame) {
  return absl::StrCat(BigEndian(frame.payload.size(), 3), BigEndian(static_cast<uint8_t>(frame.type), 1),
                      BigEndian(frame.flags, 1), BigEndian(frame.stream, 4), frame.payload);
}

std::string HeaderField(absl::string_view name, absl::string_view value) {
  return absl::StrCat(BigEndian(0, 1), BigEndian(name.size(), 1), name, BigEndian(value.size(), 1), value);
}

std::string CallHeaders(absl::string_view method) {
  return absl::StrCat(HeaderField(":method", "POST"), HeaderField(":scheme", "http"), HeaderField(":path", method),
                      HeaderField(":authority", "test"), HeaderField("content-type", "application/grpc"),
                      HeaderField("te", "trailers"));
}

std::string MessageHead(uint32_t size, bool is_compressed) {
  return absl::StrCat(BigEndian(is_compressed ? 1 : 0, 1), BigEndian(size, 4));
}

Http2Call::Http2Call(const std::string& address, uint32_t reply_window) : connection_(address) {
  const std::string settings = absl::StrCat(BigEndian(kInitialWindow, 2), BigEndian(reply_window, 4));
  connection_.Send(absl::StrCat(kHttp2Preface, ToBytes({.type = Http2Type::kSettings, .payload = settings})));
}

void Http2Call::SendHeaders(absl::string_view method) {
  call_window_ = initial_window_;
  connection_.Send(
      ToBytes({.type = Http2Type::kHeaders, .flags = kEndHeaders, .stream = kCall, .payload = CallHeaders(method)}));
}

size_t Http2Call::SendData(absl::string_view bytes, bool is_end) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const int64_t room = std::min(call_window_, connection_window_);
    if (is_ended_) break;
    if (room <= 0) {
      if (!connection_.IsReadable(kRoomPatience) || !TakeFrame()) break;
      continue;
    }
    const size_t size = std::min({bytes.size() - sent, kMaxFrame, static_cast<size_t>(room)});
    const bool is_last = is_end && sent + size == bytes.size();
    if (!connection_.Send(ToBytes({.type = Http2Type::kData,
                                   .flags = is_last ? kEndStream : uint8_t{0},
                                   .stream = kCall,
                                   .payload = std::string(bytes.substr(sent, size))}))) {
      break;
    }
    sent += size;
    call_window_ -= static_cast<int64_t>(size);
    connection_window_ -= static_cast<int64_t>(size);
  }
  return sent;
}

void Http2Call::AwaitEnd() {
  while (!is_ended_ && TakeFrame()) {
  }
}

bool Http2Call::TakeFrame() {
  const std::string head = connection_.Receive(kFrameHead);
  if (head.size() < kFrameHead) return false;
  const absl::string_view view = head;
  const Http2Frame frame = {.type = static_cast<Http2Type>(view[3]),
                            .flags = static_cast<uint8_t>(view[4]),
                            .stream = static_cast<uint32_t>(FromBigEndian(view.substr(5))),
                            .payload = connection_.Receive(FromBigEndian(view.substr(0, 3)))};
  switch (frame.type) {
    case Http2Type::kSettings:
      TakeSettings(frame);
      break;
    case Http2Type::kPing:
      if ((frame.flags & kAck) == 0) {
        connection_.Send(ToBytes({.type = Http2Type::kPing, .flags = kAck, .payload = frame.payload}));
      }
      break;
    case Http2Type::kWindowUpdate:
      (frame.stream == 0 ? connection_window_ : call_window_) += static_cast<int64_t>(FromBigEndian(frame.payload));
      break;
    case Http2Type::kReset:
    case Http2Type::kGoAway:
      is_ended_ = true;
      break;
    case Http2Type::kData:
    case Http2Type::kHeaders:
      if ((frame.flags & kEndStream) != 0) is_ended_ = true;
      break;
    case Http2Type::kContinuation:
      break;
  }
  return true;
}

void Http2Call::TakeSettings(const Http2Frame& frame) {
  if ((frame.flags & kAck) != 0) return;
  for (absl::string_view rest = frame.payload; rest.size() >= 6; rest.remove_prefix(6)) {
    if (FromBigEndian(rest.substr(0, 2)) != kInitialWindow) continue;
    const auto window = static_cast<int64_t>(FromBigEndian(rest.substr(2, 4)));
    call_window_ += window - initial_window_;
    initial_window_ = window;
  }
  connection_.Send(ToBytes({.type = Http2Type::kSettings, .flags = kAck}));
}

}  // namespace triad
