// How the core's statuses leave through gRPC.
#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>

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

// Rounded up, so that nobody comes back early; at least 1.
int64_t PushbackMs(Duration retry_after);

// Tells the caller of what was refused for load when to come back. Before Finish.
void AddRetryPushback(grpc::CallbackServerContext& rpc, Duration retry_after);

// The same as an item's error; retry_delay only with RESOURCE_EXHAUSTED.
v1::StreamError ToStreamError(const absl::Status& status, Duration retry_after);

// gRPC cancels a call whose deadline has passed, so that both look alike from inside; this tells them apart.
absl::Status WithDeadline(absl::Status status, Time deadline, Time now);

// The call's deadline on our monotonic clock, which reads `now`; kNever when there is none, or none within a year.
Time DeadlineOf(const grpc::CallbackServerContext& rpc, Time now);

}  // namespace triad
