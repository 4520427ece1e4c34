#include "client/tools/bench/time_series.h"

#include <algorithm>
#include <cstddef>

namespace triad::tools {

void TimeSeries::AddSucceeded(Duration at, Duration latency) {
  Interval& interval = At(at);
  ++interval.succeeded;
  interval.slowest = std::max(interval.slowest, latency);
}

TimeSeries::Interval& TimeSeries::At(Duration at) {
  at = std::max(at, Duration::zero());
  while (at / interval_ >= kMaxIntervals) {
    const size_t halved = (intervals_.size() + 1) / 2;
    for (size_t i = 0; i < halved; ++i) {
      Interval sum = intervals_[2 * i];
      if (2 * i + 1 < intervals_.size()) {
        const Interval& second = intervals_[2 * i + 1];
        sum.sent += second.sent;
        sum.succeeded += second.succeeded;
        sum.failed += second.failed;
        sum.slowest = std::max(sum.slowest, second.slowest);
      }
      intervals_[i] = sum;
    }
    intervals_.resize(halved);
    interval_ *= 2;
  }
  const auto index = static_cast<size_t>(at / interval_);
  if (index >= intervals_.size()) intervals_.resize(index + 1);
  return intervals_[index];
}

}  // namespace triad::tools
