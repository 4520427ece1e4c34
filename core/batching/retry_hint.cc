#include "core/batching/retry_hint.h"

#include <algorithm>

namespace triad {
namespace {
constexpr double kMemorySeconds = 1.0;  // of compute time; what is older counts half, and half again
}  // namespace

void ServiceRate::Add(double flop, Duration elapsed) {
  flop_ += flop;
  seconds_ += std::chrono::duration<double>(std::max(elapsed, Duration::zero())).count();
  if (seconds_ > kMemorySeconds) {
    flop_ /= 2;
    seconds_ /= 2;
  }
}

Duration RetryAfter(double waiting_flop, const ServiceRate& rate, int threads, const RetryLimits& limits) {
  const double flop_per_second = rate.flop_per_second() * threads;
  if (!(flop_per_second > 0)) return limits.shortest;
  const std::chrono::duration<double> drain_time(waiting_flop / flop_per_second);
  if (drain_time >= limits.longest) return limits.longest;  // before the conversion, which a huge value would overflow
  return std::max(limits.shortest, std::chrono::duration_cast<Duration>(drain_time));
}

}  // namespace triad
