// When a failed call is made again.
//
// The code decides: UNAVAILABLE, and RESOURCE_EXHAUSTED when the server said when to come back (trailing metadata
// grpc-retry-pushback-ms; its value is obeyed, negative or unparsable means never). RESOURCE_EXHAUSTED without it is
// gRPC's own refusal of a message that is too large, which no retry mends. Loading and unloading a layer are not made
// again on UNAVAILABLE: the connection may have gone after the server began, and an operator is told rather than
// surprised. All other calls change nothing on the server. The library runs this loop itself and switches gRPC's
// retries off: those commit a call once its message has outgrown a buffer of 256 KiB, which most tensors do, and would
// keep a second copy of every smaller one.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace triad::client {

// Attempt n (n >= 1) that fails is followed, after a pause drawn evenly from [1/2, 1] of
// min(initial_backoff * multiplier^(n-1), max_backoff), by the next one; or not, when that would pass the call's
// deadline.
struct RetryOptions {
  int max_attempts = 5;  // the first included; 1: no retries
  absl::Duration initial_backoff = absl::Milliseconds(100);
  double multiplier = 2;
  absl::Duration max_backoff = absl::Seconds(2);
};

// How long to wait before trying again, as the server asked: nullopt when it did not say, negative when it said never.
std::optional<absl::Duration> RetryPushback(const absl::Status& status);

// Attaches what RetryPushback reads; for connections, and for tests that stand in for one. No effect on OK.
void SetRetryPushback(absl::Duration delay, absl::Status& status);

}  // namespace triad::client
