#include "server/rpc_status.h"

#include <grpc/support/time.h>
#include <grpcpp/server_context.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace triad {

grpc::Status ToGrpc(const absl::Status& status) {
  // Both number their codes as google.rpc.Code does.
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

std::optional<int64_t> PushbackMs(const absl::Status& status, AskRetryAfter retry_after) {
  if (!absl::IsResourceExhausted(status)) return std::nullopt;
  return std::max<int64_t>(1, std::chrono::ceil<std::chrono::milliseconds>(retry_after()).count());
}

void AddRetryPushback(grpc::CallbackServerContext& rpc, const absl::Status& status, AskRetryAfter retry_after) {
  if (const std::optional<int64_t> ms = PushbackMs(status, retry_after)) {
    rpc.AddTrailingMetadata(kRetryPushbackKey, std::to_string(*ms));
  }
}

v1::StreamError ToStreamError(const absl::Status& status, AskRetryAfter retry_after) {
  v1::StreamError error;
  error.set_code(static_cast<int32_t>(status.code()));
  error.set_message(std::string(status.message()));
  if (const std::optional<int64_t> ms = PushbackMs(status, retry_after)) {
    error.mutable_retry_delay()->set_seconds(*ms / 1000);
    error.mutable_retry_delay()->set_nanos(static_cast<int32_t>(*ms % 1000 * 1'000'000));
  }
  return error;
}

absl::Status WithDeadline(absl::Status status, Time deadline, Time now) {
  if (!absl::IsCancelled(status) || now < deadline) return status;
  return absl::DeadlineExceededError("the deadline passed before the request was computed");
}

Time DeadlineOf(const grpc::CallbackServerContext& rpc, Time now) {
  // Not through std::chrono: a client may name a deadline in millennia, which overflows its nanoseconds.
  const gpr_timespec deadline = gpr_convert_clock_type(rpc.raw_deadline(), GPR_CLOCK_REALTIME);
  const gpr_timespec left = gpr_time_sub(deadline, gpr_now(GPR_CLOCK_REALTIME));
  constexpr auto kLongest = std::chrono::seconds(std::chrono::hours(24 * 365));
  if (left.tv_sec >= kLongest.count()) return kNever;
  if (left.tv_sec <= -kLongest.count()) return now;
  return now + std::chrono::seconds(left.tv_sec) + std::chrono::nanoseconds(left.tv_nsec);
}

}  // namespace triad
