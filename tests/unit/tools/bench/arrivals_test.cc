#include "client/tools/bench/arrivals.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace triad::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<Duration> All(const ArrivalPlan& plan) {
  ArrivalTimes times(plan);
  std::vector<Duration> all;
  while (const auto time = times.Next()) all.push_back(*time);
  return all;
}

TEST(ArrivalTimesTest, AConstantRateIsEvenAndBeginsAtOnce) {
  const auto times = All({.stages = {{.length = seconds(1), .from = 4, .to = 4}}});
  EXPECT_EQ(times, (std::vector<Duration>{milliseconds(0), milliseconds(250), milliseconds(500), milliseconds(750)}));
}

TEST(ArrivalTimesTest, ARampSpacesEvenlyInExpectedArrivals) {
  // 0 to 100/s in 2 s: t^2 * 25 have come at t.
  const auto times = All({.stages = {{.length = seconds(2), .from = 0, .to = 100}}});
  ASSERT_EQ(times.size(), 100u);
  for (size_t i = 0; i < times.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(times[i].count()), 1e9 * std::sqrt(static_cast<double>(i) / 25), 1) << i;
  }
}

TEST(ArrivalTimesTest, ARampDownIsTheMirrorOfARampUp) {
  const auto times = All({.stages = {{.length = seconds(2), .from = 100, .to = 0}}});
  ASSERT_EQ(times.size(), 100u);
  EXPECT_NEAR(static_cast<double>(times[75].count()), 1e9, 1);  // three quarters in the first half
}

TEST(ArrivalTimesTest, StagesFollowOneAnotherWithoutAGap) {
  const auto times = All({.stages = {{.length = seconds(1), .from = 2, .to = 2},
                                     {.length = seconds(1), .from = 0, .to = 0},
                                     {.length = seconds(1), .from = 4, .to = 4}}});
  EXPECT_EQ(times, (std::vector<Duration>{milliseconds(0), milliseconds(500), milliseconds(2000), milliseconds(2250),
                                          milliseconds(2500), milliseconds(2750)}));
}

TEST(ArrivalTimesTest, PoissonHasTheRateAndTheSpreadOfIndependentArrivals) {
  constexpr double kRate = 1000;
  constexpr int64_t kSeconds = 50;
  const auto times = All(
      {.stages = {{.length = seconds(kSeconds), .from = kRate, .to = kRate}}, .spacing = Spacing::kPoisson, .seed = 3});
  const double expected = kRate * kSeconds;
  EXPECT_NEAR(static_cast<double>(times.size()), expected, 4 * std::sqrt(expected));  // four standard deviations
  // The variance of the counts of 10 ms windows equals their mean, 10; of 5000 windows it is off by 2 % or so.
  std::vector<double> counts(kSeconds * 100);
  for (const Duration time : times) counts[static_cast<size_t>(time / milliseconds(10))] += 1;
  double variance = 0;
  for (const double count : counts) variance += (count - 10) * (count - 10) / static_cast<double>(counts.size());
  EXPECT_NEAR(variance, 10, 1);
}

TEST(ArrivalTimesTest, ASeedNamesItsTimes) {
  const ArrivalPlan plan = {
      .stages = {{.length = seconds(1), .from = 50, .to = 50}}, .spacing = Spacing::kPoisson, .seed = 5};
  ArrivalPlan other = plan;
  other.seed = 6;
  EXPECT_EQ(All(plan), All(plan));
  EXPECT_NE(All(plan), All(other));
}

TEST(ArrivalTimesTest, TimesNeverGoBack) {
  const auto times =
      All({.stages = {{.length = seconds(1), .from = 500, .to = 10}, {.length = seconds(1), .from = 10, .to = 900}},
           .spacing = Spacing::kPoisson,
           .seed = 9});
  for (size_t i = 1; i < times.size(); ++i) ASSERT_LE(times[i - 1], times[i]) << i;
  EXPECT_LT(times.back(), Duration(seconds(2)));
}

}  // namespace
}  // namespace triad::tools
