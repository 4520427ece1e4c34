#include "core/batching/shared_work.h"

#include <algorithm>

namespace triad {

void SharedWork::Add(double flop, Time deadline) {
  flop_ += flop;
  if (deadline == kNever || !(pace_.pool_flop_per_second() > 0)) return;
  const double seconds_left = std::chrono::duration<double>(deadline - now_).count();
  const double flop_by_deadline = seconds_left * pace_.pool_flop_per_second();
  if (flop_by_deadline < flop_) return;
  max_flop_ = std::min(max_flop_, std::max(flop_, flop_by_deadline / kHeadroom));
}

}  // namespace triad
