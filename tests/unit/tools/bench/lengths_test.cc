#include "client/tools/bench/lengths.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace triad::tools {
namespace {

using ::testing::HasSubstr;

std::map<int64_t, int> Draw(const LengthSpec& spec, int count) {
  const LengthSampler sampler(spec);
  Random random(11);
  std::map<int64_t, int> counts;
  for (int i = 0; i < count; ++i) ++counts[sampler.Draw(random)];
  return counts;
}

TEST(LengthsTest, TextsAreReadAndWrittenAlike) {
  for (const char* text : {"16", "uniform:1:64", "zipf:1:100:1", "zipf:8:9:0.5"}) {
    const auto spec = ParseLengths("--tokens", text);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(ToText(*spec), text);
  }
}

TEST(LengthsTest, WhatIsNoLengthIsNamed) {
  for (const char* text : {"", "0", "-1", "1.5", "uniform:4", "uniform:0:4", "uniform:5:4", "zipf:1:9:-1", "zipf:1:9:x",
                           "normal:1:9", "uniform:1:9:1", "zipf:1:99999999"}) {
    const auto spec = ParseLengths("--tokens", text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_THAT(std::string(spec.status().message()), HasSubstr("--tokens must be"));
  }
}

TEST(LengthsTest, OneLengthIsAlwaysDrawn) { EXPECT_EQ(Draw({.low = 7, .high = 7}, 100).size(), 1u); }

TEST(LengthsTest, UniformDrawsEveryLengthAlike) {
  const auto counts = Draw({.low = 3, .high = 6}, 40'000);
  ASSERT_EQ(counts.size(), 4u);
  for (const auto& [length, count] : counts) EXPECT_NEAR(count, 10'000, 400) << length;  // over four deviations
}

TEST(LengthsTest, ZipfDrawsByRank) {
  const auto counts = Draw({.shape = LengthSpec::Shape::kZipf, .low = 10, .high = 13}, 50'000);
  ASSERT_EQ(counts.size(), 4u);
  const double first = 50'000 / (1 + 1.0 / 2 + 1.0 / 3 + 1.0 / 4);
  for (const auto& [length, count] : counts) {
    EXPECT_NEAR(count, first / static_cast<double>(length - 9), 450) << length;  // four deviations
  }
}

}  // namespace
}  // namespace triad::tools
