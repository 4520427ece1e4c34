// Rotary embeddings as config.json describes them. The numbers were computed from the published formulas by hand.
#include "client/tools/import/rotary_scaling.h"

#include <cmath>
#include <string>
#include <vector>

#include "client/tools/import/config_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace triad::tools {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;

// Equal to some ulps of f64.
MATCHER(IsNear, "") {
  const auto [got, want] = arg;
  return std::abs(got - want) <= 1e-14 * want;
}

RotaryText Read(const nlohmann::json& config, int64_t dim) {
  ConfigReader reader(config, "config.json");
  const RotaryText rotary = ReadRotary(reader, dim);
  EXPECT_TRUE(reader.status().ok()) << reader.status();
  return rotary;
}

std::string Refusal(const nlohmann::json& config, int64_t dim = 8) {
  ConfigReader reader(config, "config.json");
  ReadRotary(reader, dim);
  return std::string(reader.status().message());
}

TEST(ImportRotaryTest, WithoutScalingThereIsThetaAlone) {
  EXPECT_EQ(Read(nlohmann::json::object(), 8).theta, 10000);
  EXPECT_EQ(Read({{"rope_theta", 5e5}, {"rope_scaling", nullptr}}, 8).theta, 5e5);
  const RotaryText rotary = Read({{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e6}}}}, 8);
  EXPECT_EQ(rotary.theta, 1e6);
  EXPECT_EQ(rotary.dim, 8);
  EXPECT_THAT(rotary.inverse_frequencies, IsEmpty());
}

TEST(ImportRotaryTest, LinearDividesEveryFrequency) {
  const RotaryText rotary = Read({{"rope_scaling", {{"type", "linear"}, {"factor", 4}}}}, 8);
  EXPECT_THAT(rotary.inverse_frequencies, Pointwise(IsNear(), {0.25, 0.025, 0.0025, 0.00025}));
  EXPECT_EQ(rotary.attention_factor, 1);
}

TEST(ImportRotaryTest, Llama3KeepsShortWavesAndStretchesLongOnes) {
  const RotaryText rotary = Read({{"rope_theta", 500000.0},
                                  {"rope_scaling",
                                   {{"rope_type", "llama3"},
                                    {"factor", 8.0},
                                    {"low_freq_factor", 1.0},
                                    {"high_freq_factor", 4.0},
                                    {"original_max_position_embeddings", 8192}}}},
                                 16);
  EXPECT_THAT(
      rotary.inverse_frequencies,
      Pointwise(IsNear(), {1.0, 0.19392274474868576, 0.03760603093086393, 0.007292664737217109, 0.0005248461609929547,
                           3.428102195952591e-05, 6.647869871181235e-06, 1.2891731721515574e-06}));
  EXPECT_EQ(rotary.attention_factor, 1);
}

TEST(ImportRotaryTest, YarnRampsBetweenTheTwoAndScalesSinesAndCosines) {
  const nlohmann::json scaling = {{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 32768}};
  const RotaryText rotary = Read({{"rope_theta", 1e6}, {"rope_scaling", scaling}}, 16);
  EXPECT_THAT(rotary.inverse_frequencies,
              Pointwise(IsNear(), {1.0, 0.1778279410038923, 0.03162277660168379, 0.004217559938927619, 0.0005,
                                   4.445698525097307e-05, 7.905694150420949e-06, 1.4058533129758728e-06}));
  EXPECT_THAT(rotary.attention_factor, DoubleNear(1.138629436111989, 1e-15));  // 0.1 ln 4 + 1
}

TEST(ImportRotaryTest, YarnTakesItsOptionsFromTheFile) {
  nlohmann::json scaling = {{"rope_type", "yarn"}, {"factor", 4.0}, {"truncate", false}, {"attention_factor", 1.5}};
  const RotaryText rotary =
      Read({{"rope_theta", 1e6}, {"max_position_embeddings", 32768}, {"rope_scaling", scaling}}, 16);
  EXPECT_THAT(
      rotary.inverse_frequencies,
      Pointwise(IsNear(), {1.0, 0.1778279410038923, 0.03162277660168379, 0.0055172704751341225, 0.0006074079378798391,
                           4.445698525097307e-05, 7.905694150420949e-06, 1.4058533129758728e-06}));
  EXPECT_EQ(rotary.attention_factor, 1.5);
  scaling.erase("attention_factor");
  scaling.update({{"mscale", 1.0}, {"mscale_all_dim", 1.0}});
  EXPECT_EQ(Read({{"max_position_embeddings", 64}, {"rope_scaling", scaling}}, 16).attention_factor, 1);
}

TEST(ImportRotaryTest, RefusesWhatItDoesNotKnow) {
  for (const char* type : {"dynamic", "longrope", "su", "mrope"}) {
    EXPECT_THAT(Refusal({{"rope_scaling", {{"type", type}, {"factor", 2}}}}),
                HasSubstr("rope_scaling: type must be default, linear, llama3 or yarn; was \"" + std::string(type)));
  }
  EXPECT_THAT(Refusal({{"rope_scaling", {{"factor", 2}}}}), HasSubstr("type is required"));
  EXPECT_THAT(Refusal({{"rope_parameters", {{"full_attention", {{"rope_type", "default"}}}}}}),
              HasSubstr("rope_parameters: type is required"));
  EXPECT_THAT(Refusal({{"rope_scaling", 4}}), HasSubstr("rope_scaling must be an object; was 4"));
  EXPECT_THAT(Refusal({{"partial_rotary_factor", 0.5}}), HasSubstr("partial_rotary_factor must be 1; was 0.5"));
}

TEST(ImportRotaryTest, RefusesNumbersThatMakeNoSense) {
  EXPECT_THAT(Refusal({{"rope_theta", -1}}), HasSubstr("rope_theta must be a finite number > 0; was -1"));
  EXPECT_THAT(Refusal({}, /*dim=*/7), HasSubstr("heads of even width; was 7"));
  EXPECT_THAT(Refusal({{"rope_scaling", {{"type", "linear"}}}}), HasSubstr("factor is required; was unset"));
  EXPECT_THAT(Refusal({{"rope_scaling", {{"type", "linear"}, {"factor", 0}}}}), HasSubstr("factor must be"));
  EXPECT_THAT(Refusal({{"rope_scaling", {{"type", "yarn"}, {"factor", 2}}}}),
              HasSubstr("original_max_position_embeddings is required"));
  EXPECT_THAT(Refusal({{"rope_scaling",
                        {{"type", "llama3"},
                         {"factor", 8},
                         {"low_freq_factor", 4},
                         {"high_freq_factor", 4},
                         {"original_max_position_embeddings", 64}}}}),
              HasSubstr("high_freq_factor must be larger than low_freq_factor; was 4"));
  EXPECT_THAT(Refusal({{"rope_theta", 1e-320}, {"rope_scaling", {{"type", "linear"}, {"factor", 1e-100}}}}),
              HasSubstr("past the range of f64"));
}

}  // namespace
}  // namespace triad::tools
