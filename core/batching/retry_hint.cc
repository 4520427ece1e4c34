#include "core/batching/retry_hint.h"

#include <algorithm>

namespace triad {

Duration RetryAfter(double waiting_flop, const Pace& pace, const RetryLimits& limits) {
  if (!(pace.pool_flop_per_second() > 0)) return limits.shortest;
  const std::chrono::duration<double> drain_time(waiting_flop / pace.pool_flop_per_second());
  if (drain_time >= limits.longest) return limits.longest;  // before the conversion, which a huge value would overflow
  return std::max(limits.shortest, std::chrono::duration_cast<Duration>(drain_time));
}

}  // namespace triad
