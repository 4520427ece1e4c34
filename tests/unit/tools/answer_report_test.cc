#include "client/tools/answer_report.h"

#include <cmath>
#include <sstream>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace triad::tools {
namespace {

using ::testing::HasSubstr;

TEST(AnswerReportTest, StatisticsAreOfTheFiniteValues) {
  const std::vector<float> values = {1, -3, INFINITY, NAN, 5};
  const Statistics statistics = Summarize(client::TensorView::Float32(values, {5}));
  EXPECT_EQ(statistics.finite, 3);
  EXPECT_EQ(statistics.non_finite, 2);
  EXPECT_EQ(statistics.min, -3);
  EXPECT_EQ(statistics.mean, 1);
  EXPECT_EQ(statistics.max, 5);
}

TEST(AnswerReportTest, StatisticsOfHalfFloatsAreOfTheirValues) {
  const std::vector<uint16_t> bits = {0x3c00, 0xc000};  // 1, -2
  EXPECT_EQ(Summarize(client::TensorView::Float16(bits, {2})).mean, -0.5);
}

TEST(AnswerReportTest, WhatHasNoFiniteValueHasNoStatistics) {
  const std::vector<float> values = {-INFINITY};
  const Answer answer = {.parts = {{"lse", client::TensorView::Float32(values, {1}), ""}}};
  std::ostringstream text;
  PrintAnswer(answer, absl::ZeroDuration(), text);
  EXPECT_THAT(text.str(), HasSubstr("lse      FLOAT32 [1]  not finite: 1\n"));
  std::ostringstream json;
  PrintAnswerJson(answer, absl::ZeroDuration(), json);
  const auto document = nlohmann::json::parse(json.str());
  EXPECT_TRUE(document["lse"]["min"].is_null());
  EXPECT_TRUE(document["lse"]["file"].is_null());
  EXPECT_EQ(document["lse"]["non_finite"], 1);
}

TEST(AnswerReportTest, AnEmptyAnswerIsNoFault) {
  const Answer answer = {.parts = {{"output", client::TensorView::Float32({}, {0, 4}), ""}}};
  std::ostringstream text;
  PrintAnswer(answer, absl::ZeroDuration(), text);
  EXPECT_THAT(text.str(), HasSubstr("output   FLOAT32 [0, 4]\n"));
}

TEST(AnswerReportTest, AHostedLayersAnswerSaysItsVersionAndWhoSharedIt) {
  const Answer answer = ReadAnswer(
      client::ForwardResponse{.version = 4, .timings = {.batch_requests = 3, .batch_tokens = 21}}, AnswerFlags());
  std::ostringstream text;
  PrintAnswer(answer, absl::ZeroDuration(), text);
  EXPECT_THAT(text.str(), HasSubstr("layer    version 4  projections shared by 3 requests, 21 tokens\n"));
  std::ostringstream json;
  PrintAnswerJson(answer, absl::ZeroDuration(), json);
  const auto document = nlohmann::json::parse(json.str());
  EXPECT_EQ(document["layer_version"], 4);
  EXPECT_EQ(document["timings"]["batch_requests"], 3);
  EXPECT_EQ(document["timings"]["batch_tokens"], 21);
}

}  // namespace
}  // namespace triad::tools
