#include "core/batching/shared_work.h"

#include <algorithm>

namespace triad {

double SharedWork::FlopBy(Time due) const {
  if (due == kNever || !(pace_.pool_flop_per_second() > 0)) return std::numeric_limits<double>::infinity();
  return std::chrono::duration<double>(due - now_).count() * pace_.pool_flop_per_second();
}

void SharedWork::Add(double flop, Time due) {
  flop_ += flop;
  const double flop_by_due = FlopBy(due);
  if (flop_by_due < flop_) return;
  max_flop_ = std::min(max_flop_, std::max(flop_, flop_by_due / kHeadroom));
}

bool SharedWork::WouldBeLate(double flop, Time due) const { return FlopBy(due) < flop_ + flop; }

}  // namespace triad
