#include "client/tools/bench/time_series.h"

#include "gtest/gtest.h"

namespace triad::tools {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(TimeSeriesTest, CountsByInterval) {
  TimeSeries series;
  series.AddSent(milliseconds(-3));
  series.AddSucceeded(milliseconds(99), /*latency=*/milliseconds(7));
  series.AddSucceeded(milliseconds(250), /*latency=*/milliseconds(5));
  series.AddFailed(milliseconds(250));
  ASSERT_EQ(series.intervals().size(), 3u);
  EXPECT_EQ(series.intervals()[0].sent, 1);
  EXPECT_EQ(series.intervals()[0].succeeded, 1);
  EXPECT_EQ(series.intervals()[0].slowest, Duration(milliseconds(7)));
  EXPECT_EQ(series.intervals()[1].succeeded, 0);
  EXPECT_EQ(series.intervals()[2].failed, 1);
}

TEST(TimeSeriesTest, StaysBoundedAndLosesNothing) {
  TimeSeries series;
  int64_t added = 0;
  for (Duration at = {}; at < hours(3); at += milliseconds(1700)) {
    series.AddSucceeded(at, /*latency=*/milliseconds(added));
    ++added;
  }
  EXPECT_LE(static_cast<int64_t>(series.intervals().size()), TimeSeries::kMaxIntervals);
  EXPECT_GE(static_cast<int64_t>(series.intervals().size()), TimeSeries::kMaxIntervals / 2);
  int64_t found = 0;
  for (const auto& interval : series.intervals()) found += interval.succeeded;
  EXPECT_EQ(found, added);
  EXPECT_EQ(series.intervals().back().slowest, Duration(milliseconds(added - 1)));
}

TEST(TimeSeriesTest, AGapIsIntervalsOfZero) {
  TimeSeries series;
  series.AddFailed(milliseconds(0));
  series.AddFailed(hours(1));
  EXPECT_EQ(series.intervals().front().failed, 1);
  EXPECT_EQ(series.intervals().back().failed, 1);
}

}  // namespace
}  // namespace triad::tools
