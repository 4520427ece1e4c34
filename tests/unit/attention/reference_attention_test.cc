// The reference against numbers worked out by hand: it is what everything else is compared with.
#include "core/attention/reference_attention.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/attention_case.h"
#include "tests/support/extreme_values.h"

namespace triad {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::FloatNear;
using testing::IsNan;

// One head of width 1: query 1 everywhere, key j = ln(j + 1), value j = 10 ^ j; scale 1. So exp(score of key j) is j
// + 1.
AttentionContent Logarithms(int64_t q_len, int64_t kv_len) {
  AttentionContent content = RandomContent({.q_len = q_len,
                                            .kv_len = kv_len,
                                            .qk_head_dim = 1,
                                            .v_head_dim = 1,
                                            .scale = 1.0f,
                                            .alignment = Alignment::kTopLeft});
  for (int64_t i = 0; i < q_len; ++i) content.query.at(0, 0, i, 0) = 1;
  for (int64_t j = 0; j < kv_len; ++j) {
    content.key.at(0, 0, j, 0) = std::log(static_cast<float>(j + 1));
    content.value.at(0, 0, j, 0) = std::pow(10.0f, static_cast<float>(j));
  }
  return content;
}

Answer Attend(const AttentionContent& content) { return RunContent(ReferenceAttention(), content); }

TEST(ReferenceAttentionTest, WeighsValuesByTheSoftmaxOfScores) {
  const Answer answer = Attend(Logarithms(1, 3));
  EXPECT_THAT(answer.weights.values, ElementsAre(FloatEq(1.0f / 6), FloatEq(2.0f / 6), FloatEq(3.0f / 6)));
  EXPECT_THAT(answer.output.values, ElementsAre(FloatEq(321.0f / 6)));
  EXPECT_THAT(answer.lse.values, ElementsAre(FloatEq(std::log(6.0f))));
}

TEST(ReferenceAttentionTest, ScaleIsOneOverTheRootOfTheWidthUnlessGiven) {
  AttentionContent content = RandomContent({.kv_len = 2, .qk_head_dim = 4, .v_head_dim = 1});
  content.query.values = {1, 1, 1, 1};
  content.key.values = {0, 0, 0, 0, 1, 1, 0, 0};
  EXPECT_THAT(Attend(content).weights.values,
              ElementsAre(FloatEq(1 / (1 + std::exp(1.0f))), FloatEq(1 / (1 + std::exp(-1.0f)))));
  content.options.scale = 0;
  EXPECT_THAT(Attend(content).weights.values, ElementsAre(0.5f, 0.5f));
  content.options.scale = -1;
  EXPECT_THAT(Attend(content).weights.values,
              ElementsAre(FloatEq(1 / (1 + std::exp(-2.0f))), FloatEq(1 / (1 + std::exp(2.0f)))));
}

TEST(ReferenceAttentionTest, SoftCapComesBeforeTheBias) {
  AttentionContent content = Logarithms(1, 2);
  content.options.logit_softcap = 0.5f;
  content.options.bias = MaskSharing{};
  content.bias = Array4({1, 1, 1, 2}, 0);
  content.bias->at(0, 0, 0, 1) = 3;
  const float capped = 0.5f * std::tanh(std::log(2.0f) / 0.5f) + 3;
  EXPECT_THAT(Attend(content).lse.values, ElementsAre(FloatNear(std::log(1 + std::exp(capped)), 1e-6f)));
}

TEST(ReferenceAttentionTest, AlibiTakesTheDistanceToTheAlignedPosition) {
  AttentionContent content = Logarithms(1, 3);
  content.options.alignment = Alignment::kBottomRight;  // the query stands at key 2
  content.options.alibi_slopes = {std::log(2.0f)};
  EXPECT_THAT(Attend(content).lse.values, ElementsAre(FloatEq(std::log(1.0f / 4 + 2.0f / 2 + 3.0f))));
}

TEST(ReferenceAttentionTest, ASinkTakesWeightAndHasNoValue) {
  AttentionContent content = Logarithms(1, 3);
  content.options.sinks = {std::log(4.0f)};
  const Answer answer = Attend(content);
  EXPECT_THAT(answer.weights.values, ElementsAre(FloatEq(0.1f), FloatEq(0.2f), FloatEq(0.3f)));
  EXPECT_THAT(answer.output.values, ElementsAre(FloatEq(32.1f)));
  EXPECT_THAT(answer.lse.values, ElementsAre(FloatEq(std::log(10.0f))));
}

TEST(ReferenceAttentionTest, ARowThatSeesNothingIsZero) {
  AttentionContent content = Logarithms(1, 3);
  content.options.keep = MaskSharing{};
  content.keep = Array4({1, 1, 1, 3}, 0);
  Answer answer = Attend(content);
  EXPECT_THAT(answer.output.values, ElementsAre(0));
  EXPECT_THAT(answer.weights.values, ElementsAre(0, 0, 0));
  EXPECT_THAT(answer.lse.values, ElementsAre(-kInfinity));
  content.options.sinks = {2.5f};
  EXPECT_THAT(Attend(content).lse.values, ElementsAre(2.5f)) << "the sink's value";
}

TEST(ReferenceAttentionTest, PaddingRowsDoNotSeeEvenTheSink) {
  AttentionContent content = Logarithms(2, 3);
  content.options.query_lengths = {1};
  content.options.sinks = {2.5f};
  const Answer answer = Attend(content);
  EXPECT_EQ(answer.output.at(0, 0, 1, 0), 0);
  EXPECT_EQ(answer.lse.at(0, 0, 1, 0), -kInfinity);
}

TEST(ReferenceAttentionTest, HeadsShareKvHeadsInRuns) {
  AttentionContent content = RandomContent({.heads = 4, .kv_heads = 2, .v_head_dim = 1});
  content.value.values = {5, 7};
  EXPECT_THAT(Attend(content).output.values, ElementsAre(5, 5, 7, 7));
}

TEST(ReferenceAttentionTest, ANonFiniteVisibleScoreMakesItsRowNaN) {
  for (float bad : {kNaN, kInfinity}) {
    AttentionContent content = Logarithms(2, 3);
    content.options.causal = true;
    content.key.at(0, 0, 1, 0) = bad;  // seen by query 1, not by query 0
    const Answer answer = Attend(content);
    EXPECT_THAT(answer.output.values, ElementsAre(1, IsNan()));
    EXPECT_THAT(answer.lse.values, ElementsAre(0, IsNan()));
    EXPECT_THAT(answer.weights.values, ElementsAre(1, 0, 0, IsNan(), IsNan(), 0));
  }
}

TEST(ReferenceAttentionTest, AScoreOfMinusInfinityHasWeightZeroAndItsValueIsNotRead) {
  AttentionContent content = Logarithms(1, 3);
  content.key.at(0, 0, 1, 0) = -3e38f;
  content.query.at(0, 0, 0, 0) = 2;  // past the range of f32
  content.value.at(0, 0, 1, 0) = kNaN;
  const Answer answer = Attend(content);
  EXPECT_THAT(answer.weights.values, ElementsAre(FloatEq(0.1f), 0, FloatEq(0.9f)));
  EXPECT_THAT(answer.output.values, ElementsAre(FloatEq(90.1f)));
}

TEST(ReferenceAttentionTest, OnlyScoresOfMinusInfinityAreNothing) {
  AttentionContent content = Logarithms(1, 1);
  content.key.at(0, 0, 0, 0) = -kInfinity;
  const Answer answer = Attend(content);
  EXPECT_THAT(answer.output.values, ElementsAre(0));
  EXPECT_THAT(answer.lse.values, ElementsAre(-kInfinity));
}

TEST(ReferenceAttentionTest, AnItemIsOneQueryOfOneKvHead) {
  const AttentionContent content = RandomContent({.batch = 2, .heads = 6, .kv_heads = 2, .q_len = 3, .kv_len = 5});
  const AttentionCase attention_case(content);
  const std::vector<WorkItem> items = ReferenceAttention().Plan(attention_case.problem());
  ASSERT_EQ(items.size(), 2 * 2 * 3);
  double flop = 0;
  for (const WorkItem& item : items) {
    EXPECT_EQ(item.row_end - item.row_begin, 3);
    flop += item.flop;
  }
  EXPECT_EQ(flop, FlopNeeded(attention_case.problem()));
}

}  // namespace
}  // namespace triad
