// Rows that see nothing: output 0, weights 0, lse -inf. Never an error, never NaN.

#include "gmock/gmock.h"
#include "tests/conformance/conformance_test.h"
#include "tests/support/extreme_values.h"

namespace triad {
namespace {

using testing::Each;

class NothingVisibleTest : public ConformanceTest {};

// Whether row i of head h of sequence b is a row that sees nothing.
testing::AssertionResult IsNothing(const Answer& answer, int64_t b, int64_t h, int64_t i) {
  for (int64_t d = 0; d < answer.output.shape[3]; ++d) {
    if (answer.output.at(b, h, i, d) != 0) {
      return testing::AssertionFailure() << "output[" << d << "] of query " << i << " is "
                                         << answer.output.at(b, h, i, d);
    }
  }
  for (int64_t j = 0; !answer.weights.empty() && j < answer.weights.shape[3]; ++j) {
    if (answer.weights.at(b, h, i, j) != 0) return testing::AssertionFailure() << "weight " << j << " of query " << i;
  }
  if (!answer.lse.empty() && answer.lse.at(b, h, i, 0) != -kInfinity) {
    return testing::AssertionFailure() << "lse of query " << i << " is " << answer.lse.at(b, h, i, 0);
  }
  return testing::AssertionSuccess();
}

TEST_P(NothingVisibleTest, RowsWhoseKeepIsFalseAreZeroAndOthersUnaffected) {
  AttentionContent content = Content({.q_len = 8, .kv_len = 8, .keep = MaskSharing{}, .keep_ratio = 1});
  const Answer all = Attend(content);
  for (int64_t i = 4; i < 8; ++i) {
    for (int64_t j = 0; j < 8; ++j) content.keep->at(0, 0, i, j) = 0;
  }
  const Answer answer = Attend(content);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t d = 0; d < 8; ++d) EXPECT_EQ(answer.output.at(0, 0, i, d), all.output.at(0, 0, i, d)) << i;
  }
  for (int64_t i = 4; i < 8; ++i) EXPECT_TRUE(IsNothing(answer, 0, 0, i));
  EXPECT_TRUE(MatchesReference(content, answer));
}

TEST_P(NothingVisibleTest, CausalWithLeftPaddingNeedsNoWorkaround) {
  AttentionContent content = Content({.q_len = 2, .kv_len = 2, .causal = true, .keep = MaskSharing{}, .keep_ratio = 1});
  content.keep->at(0, 0, 0, 0) = content.keep->at(0, 0, 1, 0) = 0;
  PoisonHidden(content);
  const Answer answer = Attend(content);
  EXPECT_TRUE(IsNothing(answer, 0, 0, 0));
  EXPECT_TRUE(MatchesReference(content, answer));
}

TEST_P(NothingVisibleTest, WithoutKeysEveryRowIsZero) {
  for (Layout layout : {Layout::kTokensHeads, Layout::kHeadsTokens, Layout::kPacked}) {
    const Answer answer = Attend(Content({.layout = layout, .batch = 2, .heads = 2, .q_len = 35, .kv_len = 0}));
    EXPECT_THAT(answer.output.values, Each(0));
    EXPECT_THAT(answer.lse.values, Each(-kInfinity));
  }
}

TEST_P(NothingVisibleTest, EmptyProblemsHaveEmptyAnswers) {
  for (Layout layout : {Layout::kTokensHeads, Layout::kHeadsTokens, Layout::kPacked}) {
    EXPECT_TRUE(Attend(Content({.layout = layout, .batch = 0, .q_len = 3, .kv_len = 4})).output.empty());
    EXPECT_TRUE(Attend(Content({.layout = layout, .q_len = 0, .kv_len = 4})).output.empty());
    EXPECT_TRUE(Attend(Content({.layout = layout, .q_len = 0, .kv_len = 0})).output.empty());
  }
}

TEST_P(NothingVisibleTest, ASequenceOfLengthZeroLeavesTheOthersAlone) {
  for (Layout layout : {Layout::kTokensHeads, Layout::kPacked}) {
    AttentionContent content = Content({.layout = layout,
                                        .batch = 3,
                                        .heads = 2,
                                        .q_len = 5,
                                        .kv_len = 9,
                                        .query_lengths = {{5, 4, 0}},
                                        .key_lengths = {{9, 0, 7}}});
    PoisonHidden(content);
    const Answer answer = Attend(content);
    for (int64_t i = 0; i < 5; ++i) {
      EXPECT_TRUE(IsNothing(answer, 1, 1, i));
      EXPECT_TRUE(IsNothing(answer, 2, 1, i));
    }
    EXPECT_TRUE(MatchesReference(content, answer));
  }
}

TEST_P(NothingVisibleTest, AnswersAreTheSameWithoutWeights) {
  AttentionContent content = Content({.q_len = 40, .kv_len = 70, .keep = MaskSharing{}, .keep_ratio = 0.02});
  const Answer with = Attend(content);
  content.options.return_weights = false;
  EXPECT_TRUE(Attend(content).SameBytes(with));
}

TEST_P(NothingVisibleTest, ARowWithASinkHasTheSinksValueAsLse) {
  AttentionContent content = Content(
      {.heads = 2, .q_len = 3, .kv_len = 4, .sinks = {1.5f, -kInfinity}, .keep = MaskSharing{}, .keep_ratio = 0});
  const Answer answer = Attend(content);
  EXPECT_EQ(answer.lse.at(0, 0, 1, 0), 1.5f);
  EXPECT_EQ(answer.lse.at(0, 1, 1, 0), -kInfinity);
  EXPECT_TRUE(MatchesReference(content, answer));
}

TEST_P(NothingVisibleTest, PaddingRowsIgnoreTheSink) {
  AttentionContent content =
      Content({.q_len = 20, .kv_len = 4, .sinks = {1.5f}, .query_lengths = {{17}}, .return_weights = false});
  PoisonHidden(content);
  const Answer answer = Attend(content);
  for (int64_t i = 17; i < 20; ++i) EXPECT_TRUE(IsNothing(answer, 0, 0, i));
  EXPECT_TRUE(MatchesReference(content, answer));
}

INSTANTIATE_TEST_SUITE_P(EveryPath, NothingVisibleTest, EveryPathAndType(), PathAndTypeName);

}  // namespace
}  // namespace triad
