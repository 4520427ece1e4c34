// Whether a failed attempt is followed by another, and when. Pure.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "triad/retry.h"

namespace triad::client {

// One attempt that failed.
struct FailedAttempt {
  const absl::Status& status;   // not OK; its pushback is read by RetryPushback
  int attempts = 1;             // made so far, this one included
  absl::Duration remaining;     // until the deadline of the call; may be infinite
  double random = 0;            // even in [0, 1)
  bool changes_server = false;  // whether the call does something that must not happen twice
};

// The pause before the next attempt; nullopt: the call has failed. See retry.h for the rule.
std::optional<absl::Duration> DecideRetry(const FailedAttempt& attempt, const RetryOptions& options);

// The value of trailing metadata grpc-retry-pushback-ms. What is no integer means never, as a negative one does (gRFC
// A6).
absl::Duration ParsePushback(absl::string_view milliseconds);

}  // namespace triad::client
