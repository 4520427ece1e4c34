#include "client/tools/bench/load_level.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace triad::tools {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

TEST(LoadLevelTest, ConcurrencyIsOneLevelOrARange) {
  const auto one = ParseConcurrency("16");
  ASSERT_TRUE(one.ok());
  ASSERT_EQ(one->size(), 1u);
  EXPECT_EQ((*one)[0].concurrency, 16);
  EXPECT_EQ((*one)[0].label, "concurrency 16");
  const auto range = ParseConcurrency("1:10:4");
  ASSERT_TRUE(range.ok());
  std::vector<int64_t> levels;
  for (const LoadLevel& level : *range) levels.push_back(level.concurrency);
  EXPECT_EQ(levels, (std::vector<int64_t>{1, 5, 9}));
}

TEST(LoadLevelTest, ARangeOfRatesHoldsItsEnds) {
  const auto range = ParseRate("0.1:0.3:0.1", seconds(1));
  ASSERT_TRUE(range.ok());
  ASSERT_EQ(range->size(), 3u);
  EXPECT_DOUBLE_EQ((*range)[2].stages[0].from, 0.1 + 2 * 0.1);
}

TEST(LoadLevelTest, ARampIsOneStage) {
  const auto levels = ParseRate("ramp:100:900", seconds(8));
  ASSERT_TRUE(levels.ok());
  ASSERT_EQ(levels->size(), 1u);
  const RateStage& stage = levels->front().stages.at(0);
  EXPECT_EQ(stage.from, 100);
  EXPECT_EQ(stage.to, 900);
  EXPECT_EQ(stage.length, Duration(seconds(8)));
}

TEST(LoadLevelTest, StepsShareTheDuration) {
  const auto levels = ParseRate("step:100:400:100", seconds(8));
  ASSERT_TRUE(levels.ok());
  ASSERT_EQ(levels->size(), 1u);
  const auto& stages = levels->front().stages;
  ASSERT_EQ(stages.size(), 4u);
  EXPECT_EQ(stages[3].from, 400);
  EXPECT_EQ(stages[3].to, 400);
  EXPECT_EQ(stages[3].length, Duration(seconds(2)));
}

TEST(LoadLevelTest, WhatIsNoLevelIsNamed) {
  for (const char* text : {"", "0", "-1", "1.5", "1:2", "4:1:1", "1:4:0", "1:9999:1", "x"}) {
    EXPECT_THAT(std::string(ParseConcurrency(text).status().message()), HasSubstr("--concurrency must be")) << text;
  }
  for (const char* text :
       {"", "0", "-5", "inf", "1:2", "ramp:1", "ramp:1:2:3", "step:1:2", "step:3:1:1", "1e99", "x"}) {
    EXPECT_THAT(std::string(ParseRate(text, seconds(1)).status().message()), HasSubstr("--rate must be")) << text;
  }
}

}  // namespace
}  // namespace triad::tools
