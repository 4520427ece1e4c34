// Messages that are made to cost more memory than their sender pays for.
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/server_process_test.h"
#include "tests/support/await_true.h"
#include "tests/support/http2_call.h"
#include "tests/support/server_requests.h"
#include "triad/v1/attention.grpc.pb.h"

namespace triad {
namespace {

class ServerMemoryTest : public ServerProcessTest {
 protected:
  // gRPC wins memory back by ending connections, and not always the greediest: a caller may have to send again.
  void ExpectServesWhoRetries() const {
    grpc::Status status;
    AwaitTrue([&] {
      status = CallSmallAttend(server().NewChannel());
      return status.error_code() != grpc::UNAVAILABLE;
    });
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
};

// Of requests, connections and gRPC's own buffers beside what a flag bounds.
constexpr int64_t kSlackBytes = 64 * kMiB;

TEST_F(ServerMemoryTest, AHundredHalfSentMessagesStayInsideTheQuota) {
  constexpr int64_t kQuota = 64 * kMiB;
  Start({absl::StrCat("--grpc_memory_bytes=", kQuota), absl::StrCat("--max_message_bytes=", kQuota)});
  const std::string begin = MessageHead(200 << 20) + std::string(2 << 20, 'x');
  std::vector<Http2Call> calls;
  int64_t sent = 0;
  for (int i = 0; i < 100; ++i) {
    calls.emplace_back(server().target()).SendHeaders(kAttendMethod);
    sent += static_cast<int64_t>(calls.back().SendData(begin));
    if (i % 10 == 9) ExpectServesWhoRetries();
  }
  RecordProperty("sent_mib", std::to_string(sent / kMiB));
  ExpectGrewLessThan(kQuota + kSlackBytes);
  for (Http2Call& call : calls) call.connection().Reset();
  ExpectServesWhoRetries();
}

TEST_F(ServerMemoryTest, AMessagePastTheLimitStaysInsideTheQuota) {
  constexpr int64_t kQuota = 64 * kMiB;
  Start({absl::StrCat("--grpc_memory_bytes=", kQuota), absl::StrCat("--max_message_bytes=", 16 * kMiB)});
  const auto channel = server().NewChannel();
  EXPECT_FALSE(CallRaw(channel, kAttendMethod, std::string(256 << 20, 'x')).status.ok());
  ExpectGrewLessThan(kQuota + kSlackBytes);
}

TEST_F(ServerMemoryTest, ACompressedBombIsNotUnpacked) {
  Start();
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  v1::AttendRequest zeros;
  *zeros.mutable_key() = ZeroTensor({1, 1 << 18, 1, 64});  // 64 MiB
  v1::AttendResponse response;
  const grpc::Status status = v1::AttentionService::NewStub(server().NewChannel())->Attend(&context, zeros, &response);
  EXPECT_EQ(status.error_code(), grpc::UNIMPLEMENTED) << status.error_message();
  ExpectGrewLessThan(16 * kMiB);
}

// Bytes that a parser makes more of, before any handler sees the message: protobuf keeps an empty unknown field of 3
// bytes in some 64, a dimension of 1 byte in 8 and as much again while it grows. That multiple is all there is.
class ServerInflationTest : public ServerProcessTest {
 protected:
  static constexpr int64_t kMessage = 8 * kMiB;
  static constexpr int64_t kMultiple = 24;

  // `field` over and over, in a request for Attend.
  void ExpectRefused(const std::string& field) {
    Start({absl::StrCat("--max_message_bytes=", kMessage)});
    std::string message;
    while (static_cast<int64_t>(message.size() + field.size()) <= kMessage) message += field;
    EXPECT_FALSE(CallRaw(server().NewChannel(), kAttendMethod, message).status.ok());
    ExpectGrewLessThan(kMultiple * kMessage + kSlackBytes);
  }
};

TEST_F(ServerInflationTest, EmptyUnknownFields) { ExpectRefused(std::string("\x9a\x06\x00", 3)); }

TEST_F(ServerInflationTest, EmptyUnknownGroups) { ExpectRefused("\x9b\x06\x9c\x06"); }

TEST_F(ServerInflationTest, DimensionsOfAByte) {
  const std::string packed = "\x12\x7c" + std::string(124, 1);  // Tensor.shape, 124 dimensions of 1
  ExpectRefused("\x0a\x7e" + packed);                           // AttendRequest.query, merged each time
}

}  // namespace
}  // namespace triad
