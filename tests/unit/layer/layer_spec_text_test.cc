#include "core/layer/layer_spec_text.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace triad {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kMinimal[] = R"(
model_dim: 512
heads: 8
query { weight: "q" }
key { weight: "k" }
value { weight: "v" }
output { weight: "o" }
)";

std::string Refusal(const std::string& text) {
  const absl::StatusOr<LayerSpec> spec = ParseLayerSpec(text);
  if (spec.ok()) return "accepted";
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument) << spec.status();
  return std::string(spec.status().message());
}

std::string RefusalWith(const std::string& more) { return Refusal(absl::StrCat(kMinimal, more)); }

TEST(LayerSpecTextTest, FillsInDefaults) {
  const absl::StatusOr<LayerSpec> spec = ParseLayerSpec(kMinimal);
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->output_dim, 512);
  EXPECT_EQ(spec->kv_heads, 8);
  EXPECT_EQ(spec->qk_head_dim, 64);
  EXPECT_EQ(spec->v_head_dim, 64);
  EXPECT_EQ(spec->compute, DType::kF32);
  EXPECT_EQ(spec->weight_order, WeightOrder::kOutIn);
  EXPECT_EQ(spec->alignment, Alignment::kTopLeft);
  EXPECT_EQ(spec->scale, std::nullopt);
  EXPECT_FALSE(spec->window.has_value());
  EXPECT_EQ(spec->rotary.dim, 0);
  EXPECT_FALSE(spec->is_cross());
  EXPECT_FALSE(spec->is_fused());
}

TEST(LayerSpecTextTest, ReadsSizesAndScoreRules) {
  const absl::StatusOr<LayerSpec> spec = ParseLayerSpec(R"(
    model_dim: 12 context_dim: 20 output_dim: 10 heads: 4 kv_heads: 2 qk_head_dim: 8 v_head_dim: 5 compute: BFLOAT16
    scale: 0 logit_softcap: 30 causal: true alignment: BOTTOM_RIGHT window { left: 3 }
    alibi_slopes: [1, 0.5, 0.25, -1] sinks: [1, -inf, 0, 2]
    query { weight: "q" bias: "qb" } key { weight: "k" } value { weight: "v" bias: "vb" } output { weight: "o" bias: "ob" }
    weight_order: IN_OUT)");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->context_dim, 20);
  EXPECT_EQ(spec->output_dim, 10);
  EXPECT_EQ(spec->kv_heads, 2);
  EXPECT_EQ(spec->qk_head_dim, 8);
  EXPECT_EQ(spec->v_head_dim, 5);
  EXPECT_EQ(spec->compute, DType::kBf16);
  EXPECT_EQ(spec->scale, 0.0f);
  EXPECT_EQ(spec->logit_softcap, 30);
  EXPECT_TRUE(spec->causal);
  EXPECT_EQ(spec->alignment, Alignment::kBottomRight);
  EXPECT_EQ(spec->window->left, 3);
  EXPECT_EQ(spec->window->right, std::nullopt);
  EXPECT_THAT(spec->alibi_slopes, ElementsAre(1, 0.5, 0.25, -1));
  EXPECT_THAT(spec->sinks, ElementsAre(1, -std::numeric_limits<float>::infinity(), 0, 2));
  EXPECT_EQ(spec->query.bias, "qb");
  EXPECT_EQ(spec->key.bias, "");
  EXPECT_EQ(spec->output.weight, "o");
  EXPECT_EQ(spec->weight_order, WeightOrder::kInOut);
}

TEST(LayerSpecTextTest, ReadsFusedAndRotaryLayers) {
  const absl::StatusOr<LayerSpec> spec = ParseLayerSpec(R"(
    model_dim: 8 heads: 2 alibi: true fused { weight: "qkv" } output { weight: "o" }
    rotary { dim: 4 pairs: NEIGHBOURS inverse_frequencies: [1, 0.125] attention_factor: 1.25 })");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_TRUE(spec->is_fused());
  EXPECT_TRUE(spec->alibi);
  EXPECT_EQ(spec->rotary.dim, 4);
  EXPECT_EQ(spec->rotary.pairs, RotaryPairs::kNeighbours);
  EXPECT_THAT(spec->rotary.inverse_frequencies, ElementsAre(1, 0.125));
  EXPECT_EQ(spec->rotary.attention_factor, 1.25);

  const absl::StatusOr<LayerSpec> theta = ParseLayerSpec(absl::StrCat(kMinimal, "rotary { dim: 64 theta: 5e5 }"));
  ASSERT_TRUE(theta.ok()) << theta.status();
  EXPECT_EQ(theta->rotary.pairs, RotaryPairs::kHalves);
  EXPECT_EQ(theta->rotary.theta, 5e5);
}

TEST(LayerSpecTextTest, ACrossAttentionLayerHasNoDefaultAlignment) {
  EXPECT_EQ(RefusalWith("context_dim: 512"), "accepted");
  EXPECT_THAT(RefusalWith("context_dim: 512 causal: true"), HasSubstr("alignment must be TOP_LEFT or BOTTOM_RIGHT"));
  EXPECT_EQ(RefusalWith("context_dim: 512 causal: true alignment: TOP_LEFT"), "accepted");
  EXPECT_EQ(RefusalWith("causal: true"), "accepted");
}

TEST(LayerSpecTextTest, NamesLineAndColumnOfWhatItCannotRead) {
  EXPECT_THAT(Refusal("model_dim: 512\nheads: eight\n"), StartsWith("line 2, column 8: "));
  EXPECT_THAT(Refusal("model_dim: 512\n  dropout: 0.1\n"), StartsWith("line 2, column 10: "));
  EXPECT_THAT(Refusal("model_dim: 512\n  dropout: 0.1\n"), HasSubstr("\"dropout\""));
  EXPECT_THAT(Refusal("heads: 8 heads: 4"), HasSubstr("\"heads\" is specified multiple times"));
  EXPECT_THAT(Refusal("compute: FLOAT64"), HasSubstr("\"FLOAT64\""));
  EXPECT_THAT(Refusal("heads: 9223372036854775808"), StartsWith("line 1, column 8: "));
  EXPECT_THAT(Refusal("query { weight: \"q\""), StartsWith("line 1, column "));
  EXPECT_THAT(Refusal(std::string("heads\0: 8", 9)), StartsWith("line 1, column "));
}

TEST(LayerSpecTextTest, SizesThatDoNotDivideAreNotGuessed) {
  const std::string names =
      "query { weight: \"q\" } key { weight: \"k\" } value { weight: \"v\" } output { weight: \"o\" }";
  EXPECT_EQ(Refusal("model_dim: 10 heads: 4 " + names),
            "qk_head_dim must be given when heads (4) do not divide model_dim (10); was unset");
  EXPECT_EQ(Refusal("model_dim: 10 heads: 4 qk_head_dim: 3 " + names), "accepted");
  EXPECT_EQ(Refusal("model_dim: 10 heads: 4 qk_head_dim: 0 " + names), "qk_head_dim must be >= 1; was 0");
  EXPECT_EQ(Refusal("model_dim: 10 " + names), "heads must be >= 1; was 0");
  EXPECT_EQ(Refusal("heads: 4 " + names), "model_dim must be >= 1; was 0");
  EXPECT_EQ(Refusal("model_dim: -9223372036854775808 heads: -1 " + names),
            "model_dim must be >= 1; was -9223372036854775808");
  EXPECT_EQ(RefusalWith("output_dim: 0"), "output_dim must be >= 1; was 0");
  EXPECT_EQ(RefusalWith("kv_heads: 3"), "kv_heads must divide heads (8); was 3");
}

TEST(LayerSpecTextTest, RefusesPerHeadNormsByName) {
  EXPECT_THAT(RefusalWith("query_norm: \"q_norm.weight\""),
              StartsWith("query_norm: per-head normalisation of queries is not computed"));
  EXPECT_THAT(RefusalWith("key_norm: \"k_norm.weight\""),
              StartsWith("key_norm: per-head normalisation of keys is not computed"));
}

TEST(LayerSpecTextTest, RefusesWhatOnlyTheTextCanSay) {
  EXPECT_EQ(RefusalWith("rotary {}"), "rotary.dim must be even and > 0; was 0");
  EXPECT_EQ(RefusalWith("rotary { dim: 2 theta: 1e4 inverse_frequencies: 1 }"),
            "rotary.theta must be unset when inverse_frequencies are given; was 10000");
  EXPECT_EQ(RefusalWith("fused {}"), "fused.weight must be named; was empty");
}

TEST(LayerSpecTextTest, RefusesEnumNumbersWithoutAMeaning) {
  EXPECT_EQ(RefusalWith("compute: 3"), "compute must be FLOAT32 or BFLOAT16; was 3");
  EXPECT_EQ(RefusalWith("compute: 77"), "compute must be FLOAT32 or BFLOAT16; was 77");
  EXPECT_EQ(RefusalWith("alignment: 77"), "alignment must be TOP_LEFT or BOTTOM_RIGHT; was 77");
  EXPECT_EQ(RefusalWith("weight_order: 77"), "weight_order must be OUT_IN or IN_OUT; was 77");
  EXPECT_EQ(RefusalWith("rotary { dim: 2 pairs: 77 }"), "rotary.pairs must be HALVES or NEIGHBOURS; was 77");
}

TEST(LayerSpecTextTest, RefusesTextThatIsTooLongOrTooDeep) {
  EXPECT_EQ(RefusalWith(std::string((1 << 20) - sizeof(kMinimal) + 1, ' ')), "accepted");
  EXPECT_EQ(Refusal(std::string((1 << 20) + 1, ' ')), "the text must have at most 1048576 bytes; was 1048577");
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "query {";
  EXPECT_THAT(Refusal(deep), StartsWith("line 1, column "));
  EXPECT_THAT(Refusal("unknown " + std::string(500000, '{')), StartsWith("line 1, column "));
}

TEST(LayerSpecTextTest, SaysItOnceAndNotOnStderr) {
  testing::internal::CaptureStderr();
  Refusal("model_dim: 512\nheads: eight");
  Refusal("no such thing");
  Refusal("query { weight: \"\xff\" }");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace triad
