#include "core/batching/pace.h"

#include <algorithm>

namespace triad {
namespace {
constexpr double kMemorySeconds = 0.25;    // of all threads; what is older counts half, and half again
constexpr double kStretchSeconds = 0.002;  // a thousand times what reading the clock costs; shorter than most batches
}  // namespace

void ServiceRate::Add(double flop, Duration elapsed) {
  const double seconds = std::chrono::duration<double>(std::max(elapsed, Duration::zero())).count();
  for (Stretch* stretch : {&recent_, &newest_}) {
    stretch->flop += flop;
    stretch->seconds += seconds;
  }
  if (recent_.seconds > kMemorySeconds * threads_) {
    recent_.flop /= 2;
    recent_.seconds /= 2;
  }
  if (newest_.seconds < kStretchSeconds) return;
  fastest_ = std::max(fastest_, newest_.flop_per_second());
  newest_ = {};
}

Pace ServiceRate::pace() const {
  const double usual = recent_.flop_per_second();
  return {.usual_flop_per_second = usual, .fastest_flop_per_second = std::max(fastest_, usual), .threads = threads_};
}

}  // namespace triad
