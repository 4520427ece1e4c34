// The reference against numbers worked out by hand: it is what everything else is compared with.
#include "core/attention/reference_attention.h"

#include <cmath>
#include <map>
#include <utility>
#include <vector>

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

// Each row of each sequence and kv head is in one item, in order, and the work is what the answer needs.
void ExpectCovers(const std::vector<WorkItem>& items, const AttentionProblem& problem) {
  double flop = 0;
  std::map<std::pair<int64_t, int64_t>, int64_t> rows;
  for (const WorkItem& item : items) {
    EXPECT_GT(item.row_end, item.row_begin);
    EXPECT_EQ(item.row_end % problem.group(), 0);
    for (int64_t kv_head = item.kv_head; kv_head < item.kv_head + item.kv_heads; ++kv_head) {
      int64_t& next = rows[{item.sequence, kv_head}];
      EXPECT_EQ(item.row_begin, next);
      next = item.row_end;
    }
    flop += item.flop;
  }
  ASSERT_EQ(rows.size(), problem.sequences.size() * static_cast<size_t>(problem.kv_heads));
  for (const auto& [pair, end] : rows) {
    EXPECT_EQ(end, problem.sequences[static_cast<size_t>(pair.first)].q_len * problem.group());
  }
  EXPECT_EQ(flop, FlopNeeded(problem));
}

TEST(ReferenceAttentionTest, AnItemIsSomeQueriesOfOneKvHead) {
  const AttentionContent content = RandomContent({.batch = 2,
                                                  .heads = 6,
                                                  .kv_heads = 2,
                                                  .q_len = 30,
                                                  .kv_len = 500,
                                                  .causal = true,
                                                  .alignment = Alignment::kBottomRight,
                                                  .query_lengths = {{30, 7}}});
  const AttentionCase attention_case(content);
  const std::vector<WorkItem> items = ReferenceAttention().Plan(attention_case.problem());
  ExpectCovers(items, attention_case.problem());
  EXPECT_GT(items.size(), 2u * 2u) << "large ones are more than one item";
  EXPECT_LT(items.size(), 2u * 2u * 30u) << "small queries are folded";
}

TEST(ReferenceAttentionTest, AQueryOfMuchWorkIsAnItem) {
  const AttentionContent content = RandomContent({.q_len = 3, .kv_len = 4000, .qk_head_dim = 64, .v_head_dim = 64});
  const AttentionCase attention_case(content);
  const std::vector<WorkItem> items = ReferenceAttention().Plan(attention_case.problem());
  ExpectCovers(items, attention_case.problem());
  EXPECT_EQ(items.size(), 3u);
}

TEST(ReferenceAttentionTest, AMessageOfNextToNothingIsNotPlannedIntoMuch) {
  for (const int64_t kv_len : {0, 1}) {
    AttentionOptions options{
        .batch = 3, .q_len = 200'000, .kv_len = kv_len, .qk_head_dim = 1, .v_head_dim = 1, .return_weights = false};
    const AttentionContent content = RandomContent(options);
    const AttentionCase attention_case(content);
    const std::vector<WorkItem> items = ReferenceAttention().Plan(attention_case.problem());
    ExpectCovers(items, attention_case.problem());
    EXPECT_LE(items.size(), 3u * 200'000u * 600u / 1'000'000u + 3u);
  }
}

TEST(ReferenceAttentionTest, HoweverManyQueriesTheItemsAreBounded) {
  // Nothing is read to plan: no memory needs to be there.
  AttentionProblem problem;
  problem.heads = problem.kv_heads = 4;
  problem.qk_head_dim = problem.v_head_dim = 1 << 20;
  problem.sequences = {{.q_len = 100'000, .query_length = 100'000, .kv_len = 1 << 20, .key_length = 1 << 20},
                       {.q_len = 1, .query_length = 0}};
  const std::vector<WorkItem> items = ReferenceAttention().Plan(problem);
  ExpectCovers(items, problem);
  EXPECT_LE(static_cast<int64_t>(items.size()), 2 * ReferenceAttention::kMaxFullItems + 2);
}

TEST(ReferenceAttentionTest, HeadsOfNextToNoWorkAreFoldedToo) {
  AttentionProblem problem;
  problem.heads = 2 << 14;
  problem.kv_heads = 1 << 14;
  problem.sequences = {{.q_len = 1, .query_length = 1}, {.q_len = 2, .query_length = 1, .kv_len = 3, .key_length = 3}};
  const std::vector<WorkItem> items = ReferenceAttention().Plan(problem);
  ExpectCovers(items, problem);
  EXPECT_LE(items.size(), (2u << 14) * 3u * 550u / 1'000'000u + 2u) << "rows, and what one costs at most";
}

TEST(ReferenceAttentionTest, HowQueriesAreFoldedChangesNoByte) {
  const AttentionContent content = RandomContent({.batch = 2,
                                                  .heads = 6,
                                                  .kv_heads = 2,
                                                  .q_len = 30,
                                                  .kv_len = 50,
                                                  .causal = true,
                                                  .alignment = Alignment::kTopLeft,
                                                  .query_lengths = {{30, 7}}});
  const Answer folded = Attend(content);
  const AttentionCase attention_case(content);
  Scratch scratch;
  for (const WorkItem& item : ReferenceAttention().Plan(attention_case.problem())) {
    for (int64_t row = 0; row < item.rows_of_head() * item.kv_heads; ++row) {
      WorkItem one = item;
      one.kv_head += row / item.rows_of_head();
      one.kv_heads = 1;
      one.row_begin += row % item.rows_of_head();
      one.row_end = one.row_begin + 1;
      ASSERT_TRUE(ReferenceAttention().Run(attention_case.problem(), one, attention_case.outputs(), scratch).ok());
    }
  }
  EXPECT_TRUE(attention_case.Collect().SameBytes(folded));
}

}  // namespace
}  // namespace triad
