// Many durations in little memory, and their percentiles to a stated precision.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/clock.h"

namespace triad::tools {

// A log-linear histogram: every power of two of nanoseconds is cut into 256 equal buckets, below 256 ns each nanosecond
// has its own. 70 KiB, however much is recorded. Not thread-safe.
class LatencyHistogram {
 public:
  static constexpr int kBucketBits = 8;
  // A percentile is its bucket's middle: at most half a bucket off, and a bucket is 1/256 of its lower edge or less.
  static constexpr double kRelativeError = 1.0 / (2 << kBucketBits);
  // 73 minutes. What is longer counts as this, but for max() and mean().
  static constexpr Duration kLongest = Duration((int64_t{1} << 42) - 1);

  LatencyHistogram();

  // A negative duration counts as zero.
  void Record(Duration value);

  int64_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  // Exact; zero when nothing was recorded.
  Duration min() const { return min_; }
  Duration max() const { return max_; }
  Duration mean() const;

  // The smallest duration that at least `share` (in [0, 1]) of those recorded do not exceed, within kRelativeError and
  // within [min(), max()]; zero when nothing was recorded.
  Duration Percentile(double share) const;

 private:
  std::vector<int64_t> buckets_;  // how many fell into each
  int64_t count_ = 0;
  double sum_ns_ = 0;
  Duration min_ = {};
  Duration max_ = {};
};

}  // namespace triad::tools
