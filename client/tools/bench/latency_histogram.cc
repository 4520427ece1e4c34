#include "client/tools/bench/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

namespace triad::tools {
namespace {

constexpr int kBits = LatencyHistogram::kBucketBits;
constexpr int64_t kPerOctave = int64_t{1} << kBits;

// Where `ns` >= 0 falls. Octave 0 holds [0, 256), octave n [2^(7+n), 2^(8+n)).
size_t BucketOf(int64_t ns) {
  if (ns < kPerOctave) return static_cast<size_t>(ns);
  const int shift = std::bit_width(static_cast<uint64_t>(ns)) - 1 - kBits;
  return static_cast<size_t>(shift * kPerOctave + (ns >> shift));
}

Duration MiddleOf(size_t bucket) {
  const auto index = static_cast<int64_t>(bucket);
  if (index < kPerOctave) return Duration(index);
  const int64_t shift = index / kPerOctave - 1;
  const int64_t width = int64_t{1} << shift;
  return Duration((kPerOctave + index % kPerOctave) * width + width / 2);
}

}  // namespace

LatencyHistogram::LatencyHistogram() : buckets_(BucketOf(kLongest.count()) + 1) {}

void LatencyHistogram::Record(Duration value) {
  value = std::max(value, Duration::zero());
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = std::max(max_, value);
  sum_ns_ += static_cast<double>(value.count());
  ++count_;
  ++buckets_[BucketOf(std::min(value, kLongest).count())];
}

Duration LatencyHistogram::mean() const {
  return count_ == 0 ? Duration::zero() : Duration(std::llround(sum_ns_ / static_cast<double>(count_)));
}

Duration LatencyHistogram::Percentile(double share) const {
  if (count_ == 0) return Duration::zero();
  const auto wanted = std::max(int64_t{1}, static_cast<int64_t>(std::ceil(share * static_cast<double>(count_))));
  int64_t seen = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= wanted) return std::clamp(MiddleOf(bucket), min_, max_);
  }
  return max_;
}

}  // namespace triad::tools
