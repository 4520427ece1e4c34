#include "server/rpc_status.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

namespace triad {
namespace {

constexpr int kCodes = 17;  // OK (0) to UNAUTHENTICATED (16)

TEST(PushbackTest, IsAskedForAndGivenForLoadAlone) {
  for (int code = 0; code < kCodes; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");
    int asked = 0;
    const auto retry_after = [&] {
      ++asked;
      return std::chrono::milliseconds(7);
    };
    const bool is_load = absl::IsResourceExhausted(status);
    EXPECT_EQ(PushbackMs(status, retry_after), is_load ? std::optional<int64_t>(7) : std::nullopt) << status;
    EXPECT_EQ(asked, is_load ? 1 : 0) << status;
    EXPECT_EQ(ToStreamError(status, retry_after).has_retry_delay(), is_load) << status;
    EXPECT_EQ(asked, is_load ? 2 : 0) << status;
  }
}

TEST(PushbackTest, IsRoundedUpToWholeMillisecondsAndNeverZero) {
  const absl::Status load = absl::ResourceExhaustedError("full");
  const auto pushback = [&](Duration retry_after) { return PushbackMs(load, [=] { return retry_after; }); };
  EXPECT_EQ(pushback(Duration::zero()), 1);
  EXPECT_EQ(pushback(std::chrono::nanoseconds(1)), 1);
  EXPECT_EQ(pushback(std::chrono::milliseconds(2)), 2);
  EXPECT_EQ(pushback(std::chrono::milliseconds(2) + std::chrono::nanoseconds(1)), 3);
}

TEST(StreamErrorTest, HasCodeMessageAndDelay) {
  const v1::StreamError error =
      ToStreamError(absl::ResourceExhaustedError("full"), [] { return std::chrono::milliseconds(2345); });
  EXPECT_EQ(error.code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(error.message(), "full");
  EXPECT_EQ(error.retry_delay().seconds(), 2);
  EXPECT_EQ(error.retry_delay().nanos(), 345'000'000);
}

}  // namespace
}  // namespace triad
