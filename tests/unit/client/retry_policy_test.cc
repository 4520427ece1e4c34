#include "client/src/retry_policy.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace triad::client {
namespace {

absl::Status WithPushback(absl::Status status, absl::string_view milliseconds) {
  SetRetryPushback(ParsePushback(milliseconds), status);
  return status;
}

struct Case {
  std::string name;
  absl::Status status;
  int attempts;
  absl::Duration remaining;
  double random;
  std::optional<absl::Duration> expected;
};

TEST(RetryPolicyTest, DecidesByCodePushbackAttemptsAndDeadline) {
  const RetryOptions options{.max_attempts = 4,
                             .initial_backoff = absl::Milliseconds(100),
                             .multiplier = 2,
                             .max_backoff = absl::Milliseconds(300)};
  const absl::Duration ms = absl::Milliseconds(1);
  const absl::Duration forever = absl::InfiniteDuration();
  const absl::Status unavailable = absl::UnavailableError("draining");
  const absl::Status exhausted = absl::ResourceExhaustedError("queue full");
  const std::vector<Case> cases = {
      {"unavailable, longest pause", unavailable, 1, forever, 1, 100 * ms},
      {"unavailable, shortest pause", unavailable, 1, forever, 0, 50 * ms},
      {"second pause doubles", unavailable, 2, forever, 1, 200 * ms},
      {"third pause meets the maximum", unavailable, 3, forever, 1, 300 * ms},
      {"attempts used up", unavailable, 4, forever, 1, std::nullopt},
      {"pause ends before the deadline", unavailable, 1, 101 * ms, 1, 100 * ms},
      {"pause ends at the deadline", unavailable, 1, 100 * ms, 1, std::nullopt},
      {"unavailable obeys pushback", WithPushback(unavailable, "7"), 3, forever, 1, 7 * ms},
      {"load with pushback", WithPushback(exhausted, "250"), 1, forever, 1, 250 * ms},
      {"load with pushback of 0", WithPushback(exhausted, "0"), 1, forever, 1, 0 * ms},
      {"pushback past the deadline", WithPushback(exhausted, "250"), 1, 200 * ms, 1, std::nullopt},
      {"pushback says never", WithPushback(exhausted, "-1"), 1, forever, 1, std::nullopt},
      {"pushback that cannot be read", WithPushback(exhausted, "soon"), 1, forever, 1, std::nullopt},
      {"pushback past 64 bits", WithPushback(exhausted, "99999999999999999999"), 1, forever, 1, std::nullopt},
      {"unavailable, pushback says never", WithPushback(unavailable, "-1"), 1, forever, 1, std::nullopt},
      {"too large for gRPC: no pushback", exhausted, 1, forever, 1, std::nullopt},
      {"invalid", absl::InvalidArgumentError("scale"), 1, forever, 1, std::nullopt},
      {"invalid with pushback", WithPushback(absl::InvalidArgumentError("scale"), "1"), 1, forever, 1, std::nullopt},
      {"deadline", absl::DeadlineExceededError(""), 1, forever, 1, std::nullopt},
      {"cancelled", absl::CancelledError(""), 1, forever, 1, std::nullopt},
      {"unimplemented", absl::UnimplementedError(""), 1, forever, 1, std::nullopt},
      {"internal", absl::InternalError(""), 1, forever, 1, std::nullopt},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(DecideRetry({.status = c.status, .attempts = c.attempts, .remaining = c.remaining, .random = c.random},
                          options),
              c.expected)
        << c.name;
  }
}

TEST(RetryPolicyTest, PushbackTravelsInTheStatus) {
  absl::Status status = absl::ResourceExhaustedError("queue full");
  EXPECT_EQ(RetryPushback(status), std::nullopt);
  SetRetryPushback(absl::Microseconds(1500), status);
  EXPECT_EQ(RetryPushback(status), absl::Milliseconds(2)) << "rounded up: never earlier than asked";
  SetRetryPushback(absl::Milliseconds(-1), status);
  EXPECT_LT(RetryPushback(status), absl::ZeroDuration());
}

TEST(RetryPolicyTest, AChangeIsMadeAgainOnlyWhenItWasRefusedForLoad) {
  const auto decide = [](const absl::Status& status) {
    return DecideRetry({.status = status, .remaining = absl::Seconds(30), .changes_server = true}, {});
  };
  EXPECT_EQ(decide(absl::UnavailableError("connection lost")), std::nullopt);
  EXPECT_EQ(decide(WithPushback(absl::UnavailableError("draining"), "5")), std::nullopt);
  EXPECT_EQ(decide(WithPushback(absl::ResourceExhaustedError("busy"), "5")), absl::Milliseconds(5));
}

}  // namespace
}  // namespace triad::client
