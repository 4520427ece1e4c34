// Damaged requests: whatever arrives, the next good request is answered, with the same bytes as ever.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

#include "tests/support/server_fixture.h"
#include "tests/support/server_layers.h"
#include "tests/support/server_raw_call.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

constexpr int kRounds = 400;

// Flips, cuts, doubles or overwrites some of `bytes`.
std::string Damage(std::string bytes, std::mt19937_64& random) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (size_t edits = 1 + below(4); edits > 0 && !bytes.empty(); --edits) {
    // Mostly the first bytes of a field: tags, lengths, shapes. Payload bytes are only numbers.
    const size_t at = below(4) == 0 ? below(bytes.size()) : below(std::min<size_t>(bytes.size(), 32));
    switch (below(4)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, 1 + below(16)));
        break;
    }
  }
  return bytes;
}

// Sends `good`, damaged ones, and now and then `good` again, to a server with `options`.
template <class Response>
void FuzzUnary(const char* method, const google::protobuf::Message& good, uint64_t seed,
               const ServerOptions& options = TestServerOptions()) {
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  TestServer server(options);
  const auto channel = server.NewChannel();
  const std::string bytes = good.SerializeAsString();
  Response first;
  ASSERT_TRUE(first.ParseFromString(CallRaw(channel, method, bytes).message));
  ASSERT_FALSE(first.output().data().empty());
  std::mt19937_64 random(seed);
  for (int round = 0; round < kRounds; ++round) {
    CallRaw(channel, method, Damage(bytes, random));
    if (round % 20 != 0) continue;
    const RawReply reply = CallRaw(channel, method, bytes);
    Response response;
    ASSERT_TRUE(reply.status.ok() && response.ParseFromString(reply.message))
        << "round " << round << ": " << reply.status.error_message();
    ASSERT_EQ(response.output().data(), first.output().data()) << "round " << round;
  }
}

TEST(ServerFuzzTest, DamagedRequestsDoNotDisturbTheNext) {
  v1::AttendRequest request = MakeRequest({.batch = 2, .q_len = 3, .kv_len = 5, .heads = 2, .kv_heads = 1}, 1);
  request.set_causal(true);
  request.set_alignment(v1::BOTTOM_RIGHT);
  request.mutable_key_lengths()->add_values(5);
  request.mutable_key_lengths()->add_values(2);
  request.set_return_lse(true);
  request.set_return_weights(true);
  FuzzUnary<v1::AttendResponse>(kAttendMethod, request, /*seed=*/20240131);
}

TEST(ServerFuzzTest, DamagedPackedRequestsDoNotDisturbTheNext) {
  v1::AttendRequest request;
  *request.mutable_query() = ZeroTensor({5, 2, 4});
  *request.mutable_key() = ZeroTensor({6, 1, 4});
  *request.mutable_value() = ZeroTensor({6, 1, 4});
  request.set_layout(v1::PACKED);
  for (int64_t length : {2, 3}) request.mutable_query_lengths()->add_values(length);
  for (int64_t length : {4, 2}) request.mutable_key_lengths()->add_values(length);
  FuzzUnary<v1::AttendResponse>(kAttendMethod, request, /*seed=*/20240201);
}

TEST(ServerFuzzTest, DamagedForwardsDoNotDisturbTheNext) {
  const TemporaryFolder directory;
  WriteSmallLayer(directory.path(), "small", 1, 1);
  ServerOptions options = TestServerOptions();
  options.layer_dir = directory.path().string();
  v1::ForwardRequest request = MakeForwardRequest("small", 1, {.batch = 2, .tokens = 3});
  request.set_version(1);
  for (int64_t length : {3, 1}) request.mutable_lengths()->add_values(length);
  request.set_return_lse(true);
  request.set_return_weights(true);
  FuzzUnary<v1::ForwardResponse>(kForwardMethod, request, /*seed=*/20240203, options);
}

TEST(ServerFuzzTest, DamagedFramesEndAtMostTheirStream) {
  constexpr uint64_t kSeed = 20240202;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  TestServer server;
  const auto channel = server.NewChannel();
  v1::AttendStreamRequest frame;
  frame.set_request_id(1);
  *frame.mutable_request() = OneItemRequest();
  frame.mutable_timeout()->set_seconds(10);
  const std::string bytes = frame.SerializeAsString();
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < kRounds / 4; ++round) {
    RawCall stream(channel, kAttendStreamMethod);
    for (int i = 0; i < 4 && stream.Write(Damage(bytes, random)); ++i) {
    }
    stream.WritesDone();
    while (stream.Read()) {
    }
    stream.Finish();
  }
  EXPECT_TRUE(CallRaw(channel, kAttendMethod, OneItemRequest().SerializeAsString()).status.ok());
}

}  // namespace
}  // namespace triad
