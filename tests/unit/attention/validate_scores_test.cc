// The rules on what makes and masks a score.
#include <vector>

#include "tests/support/extreme_values.h"
#include "tests/unit/attention/validate_rules.h"

namespace triad {
namespace {

using Request = AttentionRequest;

std::vector<Rule> AlignmentRules() {
  return {
      {"CausalNamesItsAlignment", Rank4, [](Request& r) { r.causal = true; },
       "alignment must be TOP_LEFT or BOTTOM_RIGHT with causal, window or ALiBi when q_len != kv_len or a lengths "
       "field is "
       "present; was unspecified, with q_len 4, kv_len 6, query_lengths absent, key_lengths absent",
       [](Request& r) {
         r.causal = true;
         r.alignment = Alignment::kTopLeft;
       }},
      {"WindowNamesItsAlignment", Rank4, [](Request& r) { r.window = Window{.left = 1}; }, "alignment must be",
       [](Request& r) {
         r.window = Window{.left = 1};
         r.alignment = Alignment::kBottomRight;
       }},
      {"AlibiNamesItsAlignment", Rank4, [](Request& r) { r.alibi = true; }, "alignment must be",
       [](Request& r) {
         r.alibi = true;
         r.alignment = Alignment::kBottomRight;
       }},
      {"AlibiSlopesNameTheirAlignment", Rank4,
       [](Request& r) {
         r.alibi_slopes = {0, 0, 0, 0};
       },
       "alignment must be",
       [](Request& r) {
         r.alibi_slopes = {0, 0, 0, 0};
         r.key.shape[1] = r.value.shape[1] = 4;
       }},
      {"AlignmentIsNamedEvenIfFullLengthsAgree", Rank4,
       [](Request& r) {
         r.causal = true;
         r.key.shape[1] = r.value.shape[1] = 4;
         r.key_lengths = {{4, 4}};
       },
       "alignment must be",
       [](Request& r) {
         r.causal = true;
         r.key.shape[1] = r.value.shape[1] = 4;
       }},
      {"PackedNamesItsAlignmentAsItHasLengths", Packed,
       [](Request& r) {
         r.causal = true;
         r.query_lengths = {{1, 3}};
       },
       "alignment must be", [](Request& r) {}},
  };
}

std::vector<Rule> ScalarRules() {
  return {
      {"ScaleIsNotNaN", Rank4, [](Request& r) { r.scale = kNaN; }, "scale must be finite; was nan",
       [](Request& r) { r.scale = 0; }},
      {"ScaleIsFinite", Rank4, [](Request& r) { r.scale = kInfinity; }, "scale must be finite; was inf",
       [](Request& r) { r.scale = -2; }},
      {"CapIsNotNegative", Rank4, [](Request& r) { r.logit_softcap = -1; },
       "logit_softcap must be finite and >= 0 (0 is off); was -1", [](Request& r) { r.logit_softcap = 0; }},
      {"CapIsFinite", Rank4, [](Request& r) { r.logit_softcap = kInfinity; }, "logit_softcap must be finite",
       [](Request& r) { r.logit_softcap = 50; }},
      {"WindowLeftIsNotNegative", Rank4, [](Request& r) { r.window = Window{.left = -1}; },
       "window.left must be >= 0; was -1",
       [](Request& r) {
         r.window = Window{.left = 0};
         r.alignment = Alignment::kTopLeft;
       }},
      {"WindowRightIsNotNegative", Rank4, [](Request& r) { r.window = Window{.right = -5}; },
       "window.right must be >= 0; was -5",
       [](Request& r) {
         r.window = Window{.right = kLargest};
         r.alignment = Alignment::kTopLeft;
       }},
  };
}

std::vector<Rule> PerHeadRules() {
  return {
      {"OneSlopePerHead", Rank4,
       [](Request& r) {
         r.alibi_slopes = {1, 2};
       },
       "alibi_slopes must have one entry for each of 4 heads, or none; was 2 entries",
       [](Request& r) {
         r.alibi_slopes = {1, 2, 3, -4};
         r.alignment = Alignment::kTopLeft;
       }},
      {"SlopesAreFinite", Rank4,
       [](Request& r) {
         r.alibi_slopes = {1, 2, -kInfinity, 4};
       },
       "alibi_slopes[2] must be finite; was -inf", [](Request& r) {}},
      {"AlibiExcludesSlopes", Rank4,
       [](Request& r) {
         r.alibi = true;
         r.alibi_slopes = {1, 2, 3, 4};
       },
       "alibi_slopes must be empty when alibi is true; was 4 entries", [](Request& r) {}},
      {"OneSinkPerHead", Rank4,
       [](Request& r) {
         r.sinks = {0, 0, 0, 0, 0};
       },
       "sinks must have one entry for each of 4 heads, or none; was 5 entries",
       [](Request& r) {
         r.sinks = {0, 0, 0, 0};
       }},
      {"SinksAreNotPlusInfinity", Rank4,
       [](Request& r) {
         r.sinks = {0, kInfinity, 0, 0};
       },
       "sinks[1] must be finite, or -inf for none; was inf",
       [](Request& r) {
         r.sinks = {0, -kInfinity, 0, 0};
       }},
      {"SinksAreNotNaN", Rank4,
       [](Request& r) {
         r.sinks = {kNaN, 0, 0, 0};
       },
       "sinks[0] must be finite, or -inf for none", [](Request& r) {}},
  };
}

std::vector<Rule> MaskRules() {
  return {
      {"KeepIsBool", Rank4,
       [](Request& r) {
         r.keep = View({2, 4, 4, 6}, DType::kF32);
       },
       "keep.dtype must be BOOL; was FLOAT32",
       [](Request& r) {
         r.keep = View({2, 4, 4, 6}, DType::kBool);
       }},
      {"BiasIsAFloat", Rank4,
       [](Request& r) {
         r.bias = View({2, 4, 4, 6}, DType::kBool);
       },
       "bias.dtype must be FLOAT32, BFLOAT16 or FLOAT16; was BOOL",
       [](Request& r) {
         r.bias = View({2, 4, 4, 6}, DType::kBf16);
       }},
      {"MaskRank", Rank4,
       [](Request& r) {
         r.keep = View({4, 6}, DType::kBool);
       },
       "keep.shape must have rank 4 ([batch|1, heads|1, q_len|1, kv_len]); was [4, 6]",
       [](Request& r) {
         r.keep = View({1, 1, 4, 6}, DType::kBool);
       }},
      {"MaskBatch", Rank4,
       [](Request& r) {
         r.keep = View({3, 1, 1, 6}, DType::kBool);
       },
       "keep.shape[0] must be 2 or 1 ([batch|1, heads|1, q_len|1, kv_len]); was 3",
       [](Request& r) {
         r.keep = View({2, 1, 1, 6}, DType::kBool);
       }},
      {"MaskHeadsAreQueryHeads", Rank4,
       [](Request& r) {
         r.bias = View({1, 2, 1, 6});
       },
       "bias.shape[1] must be 4 or 1 ([batch|1, heads|1, q_len|1, kv_len]); was 2",
       [](Request& r) {
         r.bias = View({1, 4, 1, 6});
       }},
      {"MaskQueries", Rank4,
       [](Request& r) {
         r.bias = View({1, 1, 6, 6});
       },
       "bias.shape[2] must be 4 or 1",
       [](Request& r) {
         r.bias = View({1, 1, 4, 6});
       }},
      {"MaskKeysAreNotShared", Rank4,
       [](Request& r) {
         r.keep = View({1, 1, 1, 1}, DType::kBool);
       },
       "keep.shape[3] must be 6 ([batch|1, heads|1, q_len|1, kv_len]); was 1",
       [](Request& r) {
         r.keep = View({1, 1, 1, 6}, DType::kBool);
       }},
  };
}

AttentionRequest OneSequence() {
  return {.query = View({1, 4, 4, 8}), .key = View({1, 6, 2, 8}), .value = View({1, 6, 2, 5})};
}

std::vector<Rule> MaskLayoutRules() {
  return {
      {"MaskOfOneSequence", OneSequence,
       [](Request& r) {
         r.keep = View({2, 1, 1, 6}, DType::kBool);
       },
       "keep.shape[0] must be 1 ([batch|1, heads|1, q_len|1, kv_len]); was 2",
       [](Request& r) {
         r.keep = View({1, 1, 1, 6}, DType::kBool);
       }},
      {"MaskIsTheSameInHeadsTokens", HeadsTokens,
       [](Request& r) {
         r.bias = View({2, 4, 2, 6});
       },
       "bias.shape[1] must be 2 or 1",
       [](Request& r) {
         r.bias = View({2, 2, 4, 6});
       }},
      {"PackedMaskEndsAtTheLongestKeyLength", Packed,
       [](Request& r) {
         r.keep = View({1, 4, 6}, DType::kBool);
       },
       "keep.shape[2] must be 4 ([heads|1, total q|1, longest key length]) in layout PACKED; was 6",
       [](Request& r) {
         r.keep = View({1, 4, 4}, DType::kBool);
       }},
      {"PackedMaskRank", Packed,
       [](Request& r) {
         r.bias = View({1, 1, 4, 4});
       },
       "bias.shape must have rank 3",
       [](Request& r) {
         r.bias = View({4, 1, 4});
       }},
      {"MaskShapesFit", Rank4,
       [](Request& r) {
         r.keep = View({1, kLargest, kLargest, 6}, DType::kBool);
       },
       "keep.shape must describe fewer than 2^63 bytes", [](Request& r) {}},
  };
}

class ScoreRuleTest : public RuleTest {};

TEST_P(ScoreRuleTest, IsEnforcedAndItsNeighbourIsLegal) { CheckRule(); }

INSTANTIATE_TEST_SUITE_P(Alignment, ScoreRuleTest, testing::ValuesIn(AlignmentRules()), RuleName);
INSTANTIATE_TEST_SUITE_P(Scalar, ScoreRuleTest, testing::ValuesIn(ScalarRules()), RuleName);
INSTANTIATE_TEST_SUITE_P(PerHead, ScoreRuleTest, testing::ValuesIn(PerHeadRules()), RuleName);
INSTANTIATE_TEST_SUITE_P(Mask, ScoreRuleTest, testing::ValuesIn(MaskRules()), RuleName);
INSTANTIATE_TEST_SUITE_P(MaskLayout, ScoreRuleTest, testing::ValuesIn(MaskLayoutRules()), RuleName);

}  // namespace
}  // namespace triad
