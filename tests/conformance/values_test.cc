// Numbers that overflow, underflow, cancel or are not finite.
#include <algorithm>
#include <cmath>

#include "tests/conformance/conformance_test.h"
#include "tests/support/extreme_values.h"

namespace triad {
namespace {

class ValuesTest : public ConformanceTest {};

bool AllFinite(const Array4& tensor) {
  return std::all_of(tensor.values.begin(), tensor.values.end(), [](float value) { return std::isfinite(value); });
}

void Fill(Array4& tensor, float value) { std::fill(tensor.values.begin(), tensor.values.end(), value); }

// 350 * 350 * 64 is past 65504, the largest f16.
TEST_P(ValuesTest, ProductsPastTheRangeOfHalfStayFinite) {
  AttentionContent content = Content({.q_len = 20, .kv_len = 70, .qk_head_dim = 64});
  Fill(content.query, 350);
  Fill(content.key, 350);
  const Answer answer = Attend(content);
  EXPECT_TRUE(AllFinite(answer.output));
  EXPECT_TRUE(MatchesReference(content, answer));
}

TEST_P(ValuesTest, HugeBf16NumbersStayFinite) {
  AttentionContent content = Content({.q_len = 20, .kv_len = 70});
  const float huge = dtype() == DType::kF16 ? 60000.0f : 133120.0f;
  Fill(content.query, huge);
  Fill(content.key, huge);
  Fill(content.value, huge);
  const Answer answer = Attend(content);
  EXPECT_TRUE(AllFinite(answer.output));
  EXPECT_TRUE(MatchesReference(content, answer));
}

// Of few rows and of many: the first value alone is seen, with a weight so small that the answer is -0.
TEST_P(ValuesTest, AHiddenNanLeavesMinusZeroAsItIs) {
  for (int64_t q_len : {1, 20}) {
    AttentionContent content =
        Content({.q_len = q_len, .kv_len = 2, .v_head_dim = 1, .sinks = {200}, .keep = MaskSharing{}});
    for (int64_t i = 0; i < q_len; ++i) {
      content.keep->at(0, 0, i, 0) = 1;
      content.keep->at(0, 0, i, 1) = 0;
    }
    content.value.values = {-1, 1};
    const Answer plain = Attend(content);
    content.value.values = {-1, kNaN};
    const Answer answer = Attend(content);
    for (int64_t i = 0; i < q_len; ++i) {
      EXPECT_EQ(std::signbit(answer.output.at(0, 0, i, 0)), std::signbit(plain.output.at(0, 0, i, 0))) << "query " << i;
    }
  }
}

TEST_P(ValuesTest, AVisibleInfinityCountsHoweverSmallItsWeight) {
  AttentionContent content =
      Content({.kv_len = 2, .v_head_dim = 1, .bias = MaskSharing{}, .hiding_bias_ratio = 0, .return_weights = false});
  content.bias->values = {0, -1000};
  content.value.values = {1, kInfinity};
  EXPECT_EQ(Attend(content).output.at(0, 0, 0, 0), kInfinity);
}

TEST_P(ValuesTest, ScaleMayBeZeroNegativeOrLarge) {
  for (float scale : {0.0f, -0.0f, -0.5f, 8.0f, 1e-30f}) {
    EXPECT_TRUE(Agrees(Content({.heads = 2, .q_len = 20, .kv_len = 70, .scale = scale})));
  }
}

// Softmax of one large logit and many small ones; a maximum that rises with every key; one that falls.
TEST_P(ValuesTest, PeakyRowsAgree) {
  EXPECT_TRUE(Agrees(Content({.heads = 2, .q_len = 70, .kv_len = 600, .qk_head_dim = 64, .query_gain = 4})));
  for (float step : {1.0f, -1.0f}) {
    AttentionContent content = Content({.q_len = 3, .kv_len = 600, .qk_head_dim = 1, .scale = 1.0f});
    Fill(content.query, 1);
    for (int64_t j = 0; j < 600; ++j) content.key.at(0, 0, j, 0) = Round(dtype(), step * static_cast<float>(j));
    EXPECT_TRUE(Agrees(content)) << "step " << step;
  }
}

TEST_P(ValuesTest, EqualKeysWeighEqually) {
  AttentionContent content = Content({.q_len = 20, .kv_len = 257});
  for (int64_t j = 1; j < 257; ++j) {
    for (int64_t d = 0; d < 8; ++d) content.key.at(0, 0, j, d) = content.key.at(0, 0, 0, d);
  }
  const Answer answer = Attend(content);
  for (float weight : answer.weights.values) EXPECT_NEAR(weight, 1.0 / 257, 1e-6);
  EXPECT_TRUE(MatchesReference(content, answer));
}

TEST_P(ValuesTest, AOneHotRowIsItsValue) {
  AttentionContent content = Content({.q_len = 5, .kv_len = 130, .bias = MaskSharing{}, .hiding_bias_ratio = 0});
  for (int64_t i = 0; i < 5; ++i) content.bias->at(0, 0, i, 30 * i) = 500;
  const Answer answer = Attend(content);
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t d = 0; d < 8; ++d) EXPECT_FLOAT_EQ(answer.output.at(0, 0, i, d), content.value.at(0, 0, 30 * i, d));
  }
  EXPECT_TRUE(MatchesReference(content, answer));
}

TEST_P(ValuesTest, LogitsShiftedByTenThousandAgree) {
  for (float shift : {1e4f, -1e4f}) {
    AttentionContent content = Content({.q_len = 20, .kv_len = 130, .bias = MaskSharing{}, .hiding_bias_ratio = 0});
    for (float& entry : content.bias->values) entry += shift;
    EXPECT_TRUE(Agrees(content));
  }
}

TEST_P(ValuesTest, WeightsOnTheEdgeOfUnderflowAreTinyOrZero) {
  AttentionContent content =
      Content({.q_len = 20, .kv_len = 70, .scale = 0.0f, .bias = MaskSharing{}, .hiding_bias_ratio = 0});
  for (int64_t i = 0; i < 20; ++i) {
    content.bias->at(0, 0, i, 0) = 0;
    for (int64_t j = 1; j < 70; ++j) content.bias->at(0, 0, i, j) = -87.0f - 0.25f * static_cast<float>(j % 65);
  }
  EXPECT_TRUE(Agrees(content));
}

TEST_P(ValuesTest, WhatIsNotVisibleIsNotRead) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    AttentionOptions options = {.seed = seed, .batch = 2, .heads = 4, .kv_heads = 2, .q_len = 35, .kv_len = 75};
    options.layout = static_cast<Layout>(seed % 3);
    options.alignment = seed % 2 == 0 ? Alignment::kTopLeft : Alignment::kBottomRight;
    options.causal = seed % 2 == 0;
    options.keep = MaskSharing{.heads = true, .queries = seed % 3 == 0};
    options.bias = MaskSharing{.heads = true, .queries = seed % 4 == 0};
    options.keep_ratio = 0.5;
    options.query_lengths = {{30, 35}};
    options.key_lengths = {{75, 44}};
    AttentionContent content = Content(options);
    PoisonHidden(content);
    EXPECT_TRUE(Agrees(content));
  }
}

TEST_P(ValuesTest, ABadQueryElementSpoilsItsRowOnly) {
  for (float bad : {kNaN, kInfinity}) {
    AttentionContent content = Content({.heads = 2, .q_len = 40, .kv_len = 70});
    content.query.at(0, 1, 17, 3) = bad;
    const Answer answer = Attend(content);
    EXPECT_TRUE(std::isnan(answer.output.at(0, 1, 17, 0)));
    EXPECT_FALSE(std::isnan(answer.output.at(0, 0, 17, 0)));
    EXPECT_FALSE(std::isnan(answer.output.at(0, 1, 16, 0)));
    EXPECT_TRUE(MatchesReference(content, answer));
  }
}

TEST_P(ValuesTest, AQueryOfNaNThatSeesNothingIsStillZero) {
  AttentionContent content = Content({.q_len = 4, .kv_len = 5, .keep = MaskSharing{}, .keep_ratio = 1});
  for (int64_t j = 0; j < 5; ++j) content.keep->at(0, 0, 2, j) = 0;
  for (int64_t d = 0; d < 8; ++d) content.query.at(0, 0, 2, d) = kNaN;
  EXPECT_TRUE(Agrees(content));
}

TEST_P(ValuesTest, ABadVisibleValueSpoilsItsOwnColumnsOnly) {
  for (float bad : {kNaN, kInfinity, -kInfinity}) {
    AttentionContent content = Content({.q_len = 20, .kv_len = 70, .v_head_dim = 20});
    content.value.at(0, 0, 40, 5) = bad;
    const Answer answer = Attend(content);
    EXPECT_FALSE(std::isfinite(answer.output.at(0, 0, 3, 5)));
    EXPECT_TRUE(std::isfinite(answer.output.at(0, 0, 3, 4)));
    EXPECT_TRUE(std::isfinite(answer.output.at(0, 0, 3, 6)));
    EXPECT_TRUE(MatchesReference(content, answer));
  }
}

// q . k of -1e40 and of 1e40: -inf has weight 0 and its value is not read, +inf makes the row NaN.
TEST_P(ValuesTest, ScoresPastTheRangeOfF32CountAsInfinite) {
  if (dtype() == DType::kF16) return;  // its largest products are far inside f32's range
  AttentionContent content = Content({.q_len = 2, .kv_len = 70, .qk_head_dim = 1, .scale = 1.0f});
  Fill(content.query, 1e20f);
  Fill(content.key, 0);
  for (float& element : content.query.values) element = Round(dtype(), element);
  content.key.at(0, 0, 40, 0) = Round(dtype(), -1e20f);
  for (int64_t d = 0; d < 8; ++d) content.value.at(0, 0, 40, d) = kNaN;
  EXPECT_TRUE(Agrees(content));
  content.query.at(0, 0, 1, 0) = Round(dtype(), -1e20f);
  const Answer answer = Attend(content);
  EXPECT_TRUE(std::isfinite(answer.output.at(0, 0, 0, 0)));
  EXPECT_TRUE(std::isnan(answer.output.at(0, 0, 1, 0)));
  EXPECT_TRUE(MatchesReference(content, answer));
}

TEST_P(ValuesTest, OnlyScoresOfMinusInfinityAreNothing) {
  if (dtype() == DType::kF16) return;
  AttentionContent content = Content({.q_len = 2, .kv_len = 3, .qk_head_dim = 1, .scale = 1.0f});
  Fill(content.query, Round(dtype(), 1e20f));
  Fill(content.key, Round(dtype(), -1e20f));
  EXPECT_TRUE(Agrees(content));
}

INSTANTIATE_TEST_SUITE_P(EveryPath, ValuesTest, EveryPathAndType(), PathAndTypeName);

}  // namespace
}  // namespace triad
