// How the core's statuses leave through gRPC.
#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "core/base/clock.h"
#include "triad/v1/attention.pb.h"

namespace grpc {
class CallbackServerContext;
}

namespace triad {

// Trailing metadata that says, in milliseconds, when to retry what was refused for load. gRPC's own retries obey it.
inline constexpr char kRetryPushbackKey[] = "grpc-retry-pushback-ms";

// The same code and message.
grpc::Status ToGrpc(const absl::Status& status);

// When to come back, which takes the scheduler's lock to say: asked for RESOURCE_EXHAUSTED alone.
using AskRetryAfter = absl::FunctionRef<Duration()>;

// When the caller of what ended with `status` is to come back: `retry_after` rounded up, so that nobody comes back
// early, and at least 1. nullopt: not for load.
std::optional<int64_t> PushbackMs(const absl::Status& status, AskRetryAfter retry_after);

// Tells it to the caller of `rpc`, if there is anything to tell. Before Finish.
void AddRetryPushback(grpc::CallbackServerContext& rpc, const absl::Status& status, AskRetryAfter retry_after);

// An item's error, with a retry_delay where there is one.
v1::StreamError ToStreamError(const absl::Status& status, AskRetryAfter retry_after);

// gRPC cancels a call whose deadline has passed, so that both look alike from inside; this tells them apart.
absl::Status WithDeadline(absl::Status status, Time deadline, Time now);

// The call's deadline on our monotonic clock, which reads `now`; kNever when there is none, or none within a year.
Time DeadlineOf(const grpc::CallbackServerContext& rpc, Time now);

}  // namespace triad
