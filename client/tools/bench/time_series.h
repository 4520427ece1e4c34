// What happened when, in a bounded number of equal intervals.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/clock.h"

namespace triad::tools {

// Begins with intervals of 100 ms. When a time lies past the last of kMaxIntervals, neighbours become one and the
// interval doubles: a run of any length has between kMaxIntervals / 2 and kMaxIntervals of them. Not thread-safe.
class TimeSeries {
 public:
  static constexpr int64_t kMaxIntervals = 200;

  struct Interval {
    int64_t sent = 0;
    int64_t succeeded = 0;
    int64_t failed = 0;
    Duration slowest = {};  // of those that succeeded
  };

  // `at` counts from the run's start; before it counts as at it.
  void AddSent(Duration at) { ++At(at).sent; }
  void AddSucceeded(Duration at, Duration latency);
  void AddFailed(Duration at) { ++At(at).failed; }

  Duration interval() const { return interval_; }
  // From the run's start on, without gaps; empty when nothing happened.
  const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  Interval& At(Duration at);

  Duration interval_ = std::chrono::milliseconds(100);
  std::vector<Interval> intervals_;
};

}  // namespace triad::tools
