// keep, bias, soft caps, ALiBi and sinks, alone and together.
#include <cmath>

#include "tests/conformance/conformance_test.h"
#include "tests/support/extreme_values.h"

namespace triad {
namespace {

class MasksTest : public ConformanceTest {};

// Buffers end at a page that cannot be read, so a broadcast that runs on past its end kills the test.
TEST_P(MasksTest, EveryBroadcastOfEveryLayoutAgrees) {
  for (Layout layout : {Layout::kTokensHeads, Layout::kHeadsTokens, Layout::kPacked}) {
    for (int shared = 0; shared < 8; ++shared) {
      const MaskSharing sharing = {
          .batch = (shared & 1) != 0, .heads = (shared & 2) != 0, .queries = (shared & 4) != 0};
      AttentionContent content = Content({.seed = static_cast<uint64_t>(shared),
                                          .layout = layout,
                                          .batch = 2,
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .q_len = 18,
                                          .kv_len = 37,
                                          .keep = sharing,
                                          .bias = sharing,
                                          .bias_dtype = static_cast<DType>(shared % 3)});
      PoisonHidden(content);
      EXPECT_TRUE(Agrees(content));
    }
  }
}

TEST_P(MasksTest, KeepBiasCausalLengthsAndWindowIntersect) {
  for (Layout layout : {Layout::kTokensHeads, Layout::kHeadsTokens, Layout::kPacked}) {
    AttentionContent content = Content({.layout = layout,
                                        .batch = 3,
                                        .heads = 2,
                                        .q_len = 70,
                                        .kv_len = 140,
                                        .causal = true,
                                        .alignment = Alignment::kBottomRight,
                                        .window = Window{.left = 50},
                                        .query_lengths = {{70, 66, 3}},
                                        .key_lengths = {{140, 64, 129}},
                                        .keep = MaskSharing{.heads = true},
                                        .bias = MaskSharing{.batch = true}});
    PoisonHidden(content);
    EXPECT_TRUE(Agrees(content));
  }
}

TEST_P(MasksTest, BiasesOfEveryTypeAreAdded) {
  for (DType bias_dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
    EXPECT_TRUE(
        Agrees(Content({.heads = 3, .q_len = 17, .kv_len = 65, .bias = MaskSharing{}, .bias_dtype = bias_dtype})));
  }
}

TEST_P(MasksTest, ABiasOfZerosAndOnesIsAddedAndNeverTakenForABoolean) {
  AttentionContent content = Content({.q_len = 2, .kv_len = 4, .scale = 0.0f, .bias = MaskSharing{}});
  content.bias->values = {0, 1, 0, 1, 1, 1, 0, 0};
  const Answer answer = Attend(content);
  EXPECT_NEAR(answer.weights.at(0, 0, 0, 0), 1 / (2 + 2 * std::exp(1.0)), 1e-6);
  EXPECT_TRUE(MatchesReference(content, answer));
}

TEST_P(MasksTest, ABiasOfMinusInfinityIsExactlyKeepFalse) {
  AttentionContent by_bias = Content({.heads = 2, .q_len = 40, .kv_len = 90, .bias = MaskSharing{}});
  AttentionContent by_keep = by_bias;
  by_keep.options.keep = MaskSharing{};
  by_keep.keep = Array4(by_bias.bias->shape, 1);
  for (size_t n = 0; n < by_bias.bias->values.size(); ++n) {
    if (by_bias.bias->values[n] != -kInfinity) continue;
    by_keep.keep->values[n] = 0;
    by_keep.bias->values[n] = 0;
  }
  EXPECT_TRUE(Attend(by_bias).SameBytes(Attend(by_keep)));
}

TEST_P(MasksTest, AHiddenKeyIsNotReadWhateverHidesIt) {
  for (float poison : {kNaN, kInfinity, -kInfinity}) {
    AttentionContent content =
        Content({.q_len = 20, .kv_len = 70, .bias = MaskSharing{.queries = true}, .hiding_bias_ratio = 0});
    content.bias->at(0, 0, 0, 3) = content.bias->at(0, 0, 0, 66) = -kInfinity;
    for (int64_t d = 0; d < 8; ++d) {
      content.key.at(0, 0, 3, d) = content.value.at(0, 0, 3, d) = poison;
      content.key.at(0, 0, 66, d) = content.value.at(0, 0, 66, d) = poison;
    }
    EXPECT_TRUE(Agrees(content)) << "poison " << poison;
  }
}

TEST_P(MasksTest, ABiasThatIsNotFiniteMakesItsRowNaNOnlyWhereVisible) {
  for (float bad : {kNaN, kInfinity}) {
    AttentionContent content = Content({.q_len = 20,
                                        .kv_len = 40,
                                        .causal = true,
                                        .alignment = Alignment::kTopLeft,
                                        .bias = MaskSharing{.queries = true},
                                        .hiding_bias_ratio = 0});
    content.bias->at(0, 0, 0, 12) = bad;  // seen by queries 12 and on
    const Answer answer = Attend(content);
    EXPECT_FALSE(std::isnan(answer.output.at(0, 0, 11, 0)));
    EXPECT_TRUE(std::isnan(answer.output.at(0, 0, 12, 0)));
    EXPECT_TRUE(MatchesReference(content, answer));
  }
}

TEST_P(MasksTest, SoftCapsOfEverySizeAgreeAndLeaveMaskedKeysAtZero) {
  for (float cap : {0.0f, 1e-3f, 1.0f, 30.0f, 1e6f, 3e38f}) {
    AttentionContent content = Content({.q_len = 33,
                                        .kv_len = 66,
                                        .logit_softcap = cap,
                                        .keep = MaskSharing{},
                                        .bias = MaskSharing{.heads = true},
                                        .query_gain = 4});
    PoisonHidden(content);
    EXPECT_TRUE(Agrees(content));
  }
}

TEST_P(MasksTest, AlibiAgreesForHeadsThatAreNoPowerOfTwo) {
  for (int64_t heads : {6, 8, 12}) {
    EXPECT_TRUE(Agrees(Content({.heads = heads,
                                .kv_heads = 2,
                                .q_len = 30,
                                .kv_len = 70,
                                .causal = true,
                                .alignment = Alignment::kBottomRight,
                                .alibi = true})));
  }
}

TEST_P(MasksTest, ExplicitSlopesAreTakenAsTheyAre) {
  EXPECT_TRUE(Agrees(Content(
      {.heads = 3, .q_len = 30, .kv_len = 70, .alignment = Alignment::kTopLeft, .alibi_slopes = {0.5f, 0, -0.02f}})));
}

TEST_P(MasksTest, ASinkCountsOnceHoweverManyBlocksOfKeys) {
  for (int64_t kv_len : {1, 64, 600, 1300}) {
    for (int64_t q_len : {1, 40}) {
      EXPECT_TRUE(Agrees(Content({.heads = 3, .q_len = q_len, .kv_len = kv_len, .sinks = {2, -kInfinity, -30}})));
    }
  }
}

TEST_P(MasksTest, ASinkOfMinusInfinityIsNoSink) {
  AttentionContent content = Content({.heads = 2, .q_len = 17, .kv_len = 40});
  const Answer without = Attend(content);
  content.options.sinks = {-kInfinity, -kInfinity};
  EXPECT_TRUE(Attend(content).SameBytes(without));
}

TEST_P(MasksTest, ASinkFarAboveEveryScoreLeavesAlmostNothing) {
  EXPECT_TRUE(Agrees(Content({.q_len = 17, .kv_len = 40, .sinks = {90}})));
}

INSTANTIATE_TEST_SUITE_P(EveryPath, MasksTest, EveryPathAndType(), PathAndTypeName);

}  // namespace
}  // namespace triad
