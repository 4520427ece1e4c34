#include "client/tools/attend_report.h"

#include <cmath>
#include <sstream>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace triad::tools {
namespace {

using ::testing::HasSubstr;

TEST(AttendReportTest, StatisticsAreOfTheFiniteValues) {
  const std::vector<float> values = {1, -3, INFINITY, NAN, 5};
  const Statistics statistics = Summarize(client::TensorView::Float32(values, {5}));
  EXPECT_EQ(statistics.finite, 3);
  EXPECT_EQ(statistics.non_finite, 2);
  EXPECT_EQ(statistics.min, -3);
  EXPECT_EQ(statistics.mean, 1);
  EXPECT_EQ(statistics.max, 5);
}

TEST(AttendReportTest, StatisticsOfHalfFloatsAreOfTheirValues) {
  const std::vector<uint16_t> bits = {0x3c00, 0xc000};  // 1, -2
  EXPECT_EQ(Summarize(client::TensorView::Float16(bits, {2})).mean, -0.5);
}

TEST(AttendReportTest, WhatHasNoFiniteValueHasNoStatistics) {
  const std::vector<float> values = {-INFINITY};
  const std::vector<AnswerPart> parts = {{"lse", client::TensorView::Float32(values, {1}), ""}};
  std::ostringstream text;
  PrintAnswer(parts, {}, absl::ZeroDuration(), text);
  EXPECT_THAT(text.str(), HasSubstr("lse      FLOAT32 [1]  not finite: 1\n"));
  std::ostringstream json;
  PrintAnswerJson(parts, {}, absl::ZeroDuration(), json);
  const auto document = nlohmann::json::parse(json.str());
  EXPECT_TRUE(document["lse"]["min"].is_null());
  EXPECT_TRUE(document["lse"]["file"].is_null());
  EXPECT_EQ(document["lse"]["non_finite"], 1);
}

TEST(AttendReportTest, AnEmptyAnswerIsNoFault) {
  const std::vector<AnswerPart> parts = {{"output", client::TensorView::Float32({}, {0, 4}), ""}};
  std::ostringstream text;
  PrintAnswer(parts, {}, absl::ZeroDuration(), text);
  EXPECT_THAT(text.str(), HasSubstr("output   FLOAT32 [0, 4]\n"));
}

}  // namespace
}  // namespace triad::tools
