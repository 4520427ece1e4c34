#include "client/tools/bench/svg_chart.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace triad::tools {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Texts(const Axis& axis) {
  std::vector<std::string> texts;
  for (const Tick& tick : axis.ticks) texts.push_back(tick.text);
  return texts;
}

TEST(SvgChartTest, ALinearAxisHasRoundTicksUpToWhatItHolds) {
  EXPECT_THAT(Texts(LinearAxis("", 980)), ElementsAre("0", "200", "400", "600", "800", "1000"));
  EXPECT_THAT(Texts(LinearAxis("", 3)), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(Texts(LinearAxis("", 0)), ElementsAre("0", "1"));
  EXPECT_EQ(LinearAxis("", 980).high, 1000);
}

TEST(SvgChartTest, ADurationAxisStepsBy125OrByPowersOfTen) {
  const Axis fine = DurationAxis("", microseconds(150), milliseconds(3));
  EXPECT_THAT(Texts(fine), ElementsAre("100us", "200us", "500us", "1.00ms", "2.00ms", "5.00ms"));
  EXPECT_LE(fine.low, LogNs(microseconds(150)));
  EXPECT_GE(fine.high, LogNs(milliseconds(3)));
  EXPECT_THAT(Texts(DurationAxis("", microseconds(10), seconds(90))),
              ElementsAre("10.0us", "100us", "1.00ms", "10.0ms", "100ms", "1.00s", "10.0s", "100s"));
  EXPECT_GT(DurationAxis("", Duration(0), Duration(0)).high, 0);
}

TEST(SvgChartTest, PointsOutsideTheAxesAreDrawnAtTheEdge) {
  Chart chart{.title = "t", .x = LinearAxis("x", 1), .y = LinearAxis("y", 1)};
  chart.curves.push_back({.name = "c", .color = "red", .points = {{0, 0}, {1, 5}}});
  const std::string svg = ToSvg(chart);
  EXPECT_THAT(svg, HasSubstr("M72.0 252.0L688.0 56.0"));
}

TEST(SvgChartTest, TextIsEscaped) {
  Chart chart{.title = "<p99> & \"more\""};
  EXPECT_THAT(ToSvg(chart), HasSubstr("&lt;p99&gt; &amp; &quot;more&quot;"));
  EXPECT_THAT(ToSvg(chart), Not(HasSubstr("<p99>")));
}

}  // namespace
}  // namespace triad::tools
