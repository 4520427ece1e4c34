// Many requests, each of a shape that was never there before: nothing is kept of a shape. Built twice, with a tenth of
// the shapes and with all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/server_process_test.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

constexpr int64_t kShapes = TRIAD_SOAK_SHAPES;  // at most kAllShapes
constexpr int64_t kAllShapes = 2000;

// The `n`-th of kAllShapes shapes, no two alike.
RequestShape ShapeOf(int64_t n) {
  return {.q_len = 1 + 3 * (n % 20), .kv_len = 1 + 5 * (n / 20 % 25), .head_dim = 8 * (1 + n / 500)};
}

// By the kernel that --kernel names: oneDNN compiles products, which could be kept for each shape.
class ServerSoakTest : public ServerProcessTest, public ::testing::WithParamInterface<std::string> {};

// From the first quarter on, memory grows by less than kGrowthBytes, and no thread is added but gRPC's own, of which a
// few come and go.
TEST_P(ServerSoakTest, MemoryAndThreadsStayOverManyShapes) {
  constexpr uint64_t kSeed = 20240601;
  constexpr int64_t kGrowthBytes = 8 * kMiB;
  constexpr int64_t kGrpcThreads = 4;
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  Start({absl::StrCat("--kernel=", GetParam())});
  std::vector<int64_t> order(kAllShapes);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(kSeed));
  const auto channel = server().NewChannel();
  int64_t warm_bytes = 0;
  int64_t warm_threads = 0;
  int64_t warm_own_threads = 0;
  for (int64_t i = 0; i < kShapes; ++i) {
    if (i == kShapes / 4) {
      warm_bytes = server().ResidentBytes();
      warm_threads = server().Threads("");
      warm_own_threads = server().Threads("triad-");
    }
    const v1::AttendRequest request = MakeRequest(ShapeOf(order[static_cast<size_t>(i)]), kSeed);
    const grpc::Status status = CallRaw(channel, kAttendMethod, request.SerializeAsString()).status;
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  const int64_t growth = server().ResidentBytes() - warm_bytes;
  RecordProperty("growth_kib", std::to_string(growth / 1024));
  EXPECT_LT(growth, kGrowthBytes) << "over " << warm_bytes / kMiB << " MiB";
  EXPECT_EQ(server().Threads("triad-"), warm_own_threads);
  EXPECT_LE(server().Threads(""), warm_threads + kGrpcThreads);
}

INSTANTIATE_TEST_SUITE_P(Kernels, ServerSoakTest, ::testing::Values("fused", "onednn"),
                         [](const auto& kernel) { return absl::StrCat(kernel.param, "_", kShapes, "_shapes"); });

}  // namespace
}  // namespace triad
