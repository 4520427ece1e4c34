#include "client/tools/bench/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/random.h"
#include "gtest/gtest.h"

namespace triad::tools {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(LatencyHistogramTest, IsZeroWhileEmpty) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.Percentile(0.99), Duration::zero());
  EXPECT_EQ(histogram.mean(), Duration::zero());
}

TEST(LatencyHistogramTest, OneValueIsEveryPercentile) {
  LatencyHistogram histogram;
  histogram.Record(milliseconds(123));
  for (const double share : {0.0, 0.5, 0.9999, 1.0}) EXPECT_EQ(histogram.Percentile(share), milliseconds(123));
}

TEST(LatencyHistogramTest, SmallValuesAreExact) {
  LatencyHistogram histogram;
  for (int ns = 1; ns <= 100; ++ns) histogram.Record(Duration(ns));
  EXPECT_EQ(histogram.Percentile(0.5), Duration(50));
  EXPECT_EQ(histogram.Percentile(0.99), Duration(99));
  EXPECT_EQ(histogram.Percentile(0.991), Duration(100));
}

TEST(LatencyHistogramTest, PercentilesOfAnyDistributionAreWithinTheStatedError) {
  Random random(7);
  LatencyHistogram histogram;
  std::vector<Duration> values;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(Duration(std::llround(std::exp2(random.Unit() * 40))));  // all octaves alike
    histogram.Record(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double share : {0.001, 0.1, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999}) {
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
    const auto truth = static_cast<double>(values[rank - 1].count());
    const auto got = static_cast<double>(histogram.Percentile(share).count());
    EXPECT_NEAR(got, truth, truth * LatencyHistogram::kRelativeError) << share;
  }
}

TEST(LatencyHistogramTest, ExtremesAndMeanAreExact) {
  LatencyHistogram histogram;
  histogram.Record(Duration(1'000'001));
  histogram.Record(Duration(3'000'003));
  EXPECT_EQ(histogram.min(), Duration(1'000'001));
  EXPECT_EQ(histogram.max(), Duration(3'000'003));
  EXPECT_EQ(histogram.mean(), Duration(2'000'002));
}

TEST(LatencyHistogramTest, WhatIsOutOfRangeCountsAtItsEnds) {
  LatencyHistogram histogram;
  histogram.Record(Duration(-5));
  histogram.Record(hours(5));
  EXPECT_EQ(histogram.count(), 2);
  EXPECT_EQ(histogram.min(), Duration::zero());
  EXPECT_EQ(histogram.max(), Duration(hours(5)));
  const auto longest = static_cast<double>(LatencyHistogram::kLongest.count());
  EXPECT_NEAR(static_cast<double>(histogram.Percentile(1).count()), longest,
              longest * LatencyHistogram::kRelativeError);
}

}  // namespace
}  // namespace triad::tools
