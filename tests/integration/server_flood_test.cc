// Floods of legal and illegal HTTP/2 frames from a client that never reads: they cost bounded memory, and others are
// served. Each is a fault that HTTP/2 servers have had. Not here: headers that unpack into many times their size, which
// gRPC 1.51 takes in before it looks at their limit (CVE-2023-33953).
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/integration/server_process_test.h"
#include "tests/support/http2_call.h"
#include "tests/support/raw_connection.h"

namespace triad {
namespace {

constexpr int64_t kFloodBytes = 32 * kMiB;
constexpr size_t kFrameBytes = 16384;  // the most that a frame holds

std::string Repeat(const std::string& text, size_t bytes) {
  std::string all;
  while (all.size() + text.size() <= bytes) all += text;
  return all;
}

class ServerFloodTest : public ServerProcessTest {
 protected:
  void SetUp() override { Start(); }

  RawConnection Hello() const {
    RawConnection connection(server().target());
    connection.Send(absl::StrCat(kHttp2Preface, ToBytes({.type = Http2Type::kSettings})));
    return connection;
  }
  // Says hello, `begin`, then `again` up to `times` times, as long as the server takes it.
  void Flood(const std::string& begin, const std::string& again, int times) const {
    const RawConnection connection = Hello();
    connection.Send(begin);
    for (int i = 0; i < times && connection.Send(again); ++i) {
    }
    ExpectServes();
    ExpectGrewLessThan(kFloodBytes);
  }
};

TEST_F(ServerFloodTest, CallsThatAreResetAtOnce) {
  const RawConnection connection = Hello();
  const std::string cancel("\x00\x00\x00\x08", 4);
  for (uint32_t stream = 1; stream < 40'000; stream += 2) {
    const Http2Frame begin = {
        .type = Http2Type::kHeaders, .flags = kEndHeaders, .stream = stream, .payload = CallHeaders(kAttendMethod)};
    const Http2Frame end = {.type = Http2Type::kReset, .stream = stream, .payload = cancel};
    if (!connection.Send(ToBytes(begin) + ToBytes(end))) break;
  }
  ExpectServes();
  ExpectGrewLessThan(kFloodBytes);
}

TEST_F(ServerFloodTest, Pings) {
  Flood("", Repeat(ToBytes({.type = Http2Type::kPing, .payload = "12345678"}), kFrameBytes), /*times=*/200);
}

TEST_F(ServerFloodTest, Settings) {
  Flood("", Repeat(ToBytes({.type = Http2Type::kSettings}), kFrameBytes), /*times=*/200);
}

TEST_F(ServerFloodTest, AFrameLongerThanIsAllowed) {
  std::string head = ToBytes({.type = Http2Type::kData, .stream = 1});
  head.replace(0, 3, "\xff\xff\xff");
  Flood(head, std::string(kFrameBytes, 'x'), /*times=*/1000);
}

}  // namespace
}  // namespace triad
