#include "client/tools/bench/service_level.h"

#include <chrono>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace triad::tools {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(ServiceLevelTest, ReadsPercentileAndLimit) {
  const auto level = ParseServiceLevel("p99.9=20ms");
  ASSERT_TRUE(level.ok()) << level.status();
  EXPECT_DOUBLE_EQ(level->share, 0.999);
  EXPECT_EQ(level->limit, Duration(milliseconds(20)));
  EXPECT_EQ(ToText(*level), "p99.9=20ms");
}

TEST(ServiceLevelTest, WhatIsNoObjectiveIsNamed) {
  for (const char* text :
       {"", "p99", "99=20ms", "p0=1s", "p100=1s", "p99=0s", "p99=-1s", "p99=soon", "p99=inf", "p=1s"}) {
    EXPECT_THAT(std::string(ParseServiceLevel(text).status().message()), HasSubstr("--slo must be")) << text;
  }
}

TEST(ServiceLevelTest, IsMetByTheShareOfAllThatWasDue) {
  const ServiceLevel level = {.share = 0.9, .limit = milliseconds(1)};
  EXPECT_TRUE(level.IsMet(/*within=*/90, /*all=*/100));
  EXPECT_FALSE(level.IsMet(/*within=*/89, /*all=*/100));
  EXPECT_FALSE(level.IsMet(/*within=*/0, /*all=*/0));
}

// The rate that a search finds where rates up to `capacity` meet the objective.
std::optional<double> Find(RateSearch& search, double capacity, int& tries) {
  for (tries = 0; search.next(); ++tries) search.Report(/*met=*/*search.next() <= capacity);
  return search.best();
}

TEST(RateSearchTest, EndsWithinItsPrecisionBelowTheCapacity) {
  for (const double capacity : {0.7, 99.0, 100.0, 1234.0, 1e6}) {
    RateSearch search(/*start=*/100, /*precision=*/0.05);
    int tries = 0;
    const auto best = Find(search, capacity, tries);
    ASSERT_TRUE(best.has_value()) << capacity;
    EXPECT_LE(*best, capacity);
    EXPECT_GE(*best * 1.05, capacity);
    EXPECT_LE(tries, 25) << capacity;
  }
}

TEST(RateSearchTest, GivesUpWhereNothingMeetsOrNothingMisses) {
  int tries = 0;
  RateSearch none(/*start=*/100, /*precision=*/0.05);
  EXPECT_EQ(Find(none, /*capacity=*/0, tries), std::nullopt);
  EXPECT_EQ(tries, 40);
  RateSearch all(/*start=*/100, /*precision=*/0.05);
  EXPECT_TRUE(Find(all, /*capacity=*/1e300, tries).has_value());
  EXPECT_EQ(tries, 40);
}

TEST(ServiceLevelTest, OfItsLeastRequestsOneMayMissAndOfFewerNone) {
  for (const char* text : {"p50=1s", "p90=1s", "p95=1s", "p99=1s", "p99.9=1s", "p99.99=1s"}) {
    const ServiceLevel level = *ParseServiceLevel(text);
    const int64_t least = level.LeastRequests();
    EXPECT_TRUE(level.IsMet(least - 1, least)) << text << " " << least;
    EXPECT_FALSE(level.IsMet(least - 2, least - 1)) << text << " " << least;
  }
}

}  // namespace
}  // namespace triad::tools
