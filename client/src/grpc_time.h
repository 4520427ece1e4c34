// Deadlines as gRPC takes them.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "grpc/support/time.h"

namespace triad::client {

// The time `timeout` from now on the monotonic clock, so that setting the time of day moves no deadline.
inline gpr_timespec GrpcDeadline(absl::Duration timeout) {
  // Past this, gRPC's arithmetic in milliseconds is not worth trusting; a year is as good as for ever.
  constexpr absl::Duration kForever = absl::Hours(24 * 365);
  if (timeout > kForever) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  if (timeout < absl::ZeroDuration()) timeout = absl::ZeroDuration();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(absl::ToInt64Nanoseconds(timeout), GPR_TIMESPAN));
}

}  // namespace triad::client
