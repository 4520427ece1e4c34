#include "client/src/retry_policy.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace triad::client {
namespace {

// Status payload that carries the pushback, as decimal milliseconds.
constexpr absl::string_view kPushbackUrl = "triad/grpc-retry-pushback-ms";

absl::Duration Backoff(const FailedAttempt& attempt, const RetryOptions& options) {
  const absl::Duration longest =
      std::min(options.initial_backoff * std::pow(options.multiplier, attempt.attempts - 1), options.max_backoff);
  return longest * (0.5 + 0.5 * attempt.random);
}

}  // namespace

std::optional<absl::Duration> DecideRetry(const FailedAttempt& attempt, const RetryOptions& options) {
  if (attempt.attempts >= options.max_attempts) return std::nullopt;
  const std::optional<absl::Duration> pushback = RetryPushback(attempt.status);
  const bool load_refusal = absl::IsResourceExhausted(attempt.status) && pushback.has_value();
  // UNAVAILABLE may have come from a connection that broke after the server began; a refusal for load has not begun.
  const bool unavailable = absl::IsUnavailable(attempt.status) && !attempt.changes_server;
  if (!unavailable && !load_refusal) return std::nullopt;
  if (pushback.has_value() && *pushback < absl::ZeroDuration()) return std::nullopt;
  const absl::Duration delay = pushback.value_or(Backoff(attempt, options));
  // An answer that tells why is worth more than a wait that can only end in DEADLINE_EXCEEDED.
  if (delay >= attempt.remaining) return std::nullopt;
  return delay;
}

absl::Duration ParsePushback(absl::string_view milliseconds) {
  int64_t value = 0;
  return absl::SimpleAtoi(milliseconds, &value) ? absl::Milliseconds(value) : absl::Milliseconds(-1);
}

std::optional<absl::Duration> RetryPushback(const absl::Status& status) {
  const auto payload = status.GetPayload(kPushbackUrl);
  if (!payload.has_value()) return std::nullopt;
  return ParsePushback(std::string(*payload));
}

void SetRetryPushback(absl::Duration delay, absl::Status& status) {
  status.SetPayload(kPushbackUrl,
                    absl::Cord(absl::StrCat(absl::ToInt64Milliseconds(absl::Ceil(delay, absl::Milliseconds(1))))));
}

}  // namespace triad::client
