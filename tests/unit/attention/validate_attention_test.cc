#include "core/attention/validate_attention.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace triad {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

// Validation reads no element, so these views need no data.
TensorView View(Shape shape, DType dtype = DType::kF32) { return {.dtype = dtype, .shape = std::move(shape)}; }

// batch 2, q_len 4, kv_len 6, heads 4, kv_heads 2, qk_head_dim 8, v_head_dim 5.
AttentionRequest Rank4() {
  return {.query = View({2, 4, 4, 8}), .key = View({2, 6, 2, 8}), .value = View({2, 6, 2, 5})};
}

// The same sequences end to end, one with 1 query and 4 keys, one with 3 and 2.
AttentionRequest Packed() {
  return {.query = View({4, 4, 8}),
          .key = View({6, 2, 8}),
          .value = View({6, 2, 5}),
          .layout = Layout::kPacked,
          .query_lengths = {{1, 3}},
          .key_lengths = {{4, 2}}};
}

absl::Status Validate(const AttentionRequest& request, const AttentionLimits& limits = {}) {
  return ValidateAttention(request, limits).status();
}

// A change that breaks one rule, the message, and the nearest change that does not.
struct Rule {
  std::string name;
  AttentionRequest (*base)();
  std::function<void(AttentionRequest&)> breaks;
  std::string message;
  std::function<void(AttentionRequest&)> keeps;
};

using Request = AttentionRequest;

std::vector<Rule> TensorRules() {
  return {
      {"QueryIsAFloat", Rank4, [](Request& r) { r.query.dtype = DType::kBool; },
       "query.dtype must be FLOAT32, BFLOAT16 or FLOAT16; was BOOL",
       [](Request& r) { r.query.dtype = r.key.dtype = r.value.dtype = DType::kF16; }},
      {"KeyHasTheQuerysType", Rank4, [](Request& r) { r.key.dtype = DType::kF16; },
       "key.dtype must equal query.dtype (FLOAT32); was FLOAT16",
       [](Request& r) { r.query.dtype = r.key.dtype = r.value.dtype = DType::kBf16; }},
      {"ValueHasTheQuerysType", Rank4, [](Request& r) { r.value.dtype = DType::kBf16; },
       "value.dtype must equal query.dtype (FLOAT32); was BFLOAT16", [](Request& r) {}},
      {"QueryHasTheLayoutsRank", Rank4,
       [](Request& r) {
         r.query.shape = {4, 4, 8};
       },
       "query.shape must have rank 4 ([batch, tokens, heads, dim]) in layout TOKENS_HEADS; was [4, 4, 8]",
       [](Request& r) {
         r.query.shape = {2, 4, 4, 8};
       }},
      {"PackedHasRankThree", Packed,
       [](Request& r) {
         r.value.shape = {1, 6, 2, 5};
       },
       "value.shape must have rank 3 ([total tokens, heads, dim]) in layout PACKED; was [1, 6, 2, 5]",
       [](Request& r) {}},
      {"DimensionsAreNotNegative", Rank4, [](Request& r) { r.query.shape[1] = -1; },
       "query.shape[1] must be >= 0; was -1", [](Request& r) { r.query.shape[1] = 0; }},
      {"ShapesFit", Rank4,
       [](Request& r) {
         r.query.shape = {kLargest, 2, 4, 8};
       },
       "query.shape must describe fewer than 2^63 bytes", [](Request& r) {}},
      {"ShapesFitEvenWhenEmpty", Rank4,
       [](Request& r) {
         r.query.shape = {0, kLargest, 4, 8};
       },
       "query.shape must describe fewer than 2^63 bytes",
       [](Request& r) { r.query.shape[0] = r.key.shape[0] = r.value.shape[0] = 0; }},
      {"HeadsAreAtLeastOne", Rank4, [](Request& r) { r.query.shape[2] = 0; },
       "query.shape[2] (heads) must be >= 1; was 0", [](Request& r) { r.query.shape[2] = 2; }},
      {"KvHeadsAreAtLeastOne", Rank4, [](Request& r) { r.key.shape[2] = r.value.shape[2] = 0; },
       "key.shape[2] (kv_heads) must be >= 1; was 0", [](Request& r) { r.key.shape[2] = r.value.shape[2] = 1; }},
      {"WidthsAreAtLeastOne", Rank4, [](Request& r) { r.query.shape[3] = r.key.shape[3] = 0; },
       "query.shape[3] (qk_head_dim) must be >= 1; was 0", [](Request& r) { r.query.shape[3] = r.key.shape[3] = 1; }},
      {"ValueWidthIsAtLeastOne", Rank4, [](Request& r) { r.value.shape[3] = 0; },
       "value.shape[3] (v_head_dim) must be >= 1; was 0", [](Request& r) { r.value.shape[3] = 1; }},
      {"BatchesAgree", Rank4, [](Request& r) { r.key.shape[0] = 3; },
       "key.shape[0] must equal query.shape[0] (2); was 3",
       [](Request& r) { r.query.shape[0] = r.key.shape[0] = r.value.shape[0] = 3; }},
      {"WidthsAgree", Rank4, [](Request& r) { r.key.shape[3] = 9; },
       "key.shape[3] must equal query.shape[3] (8); was 9", [](Request& r) { r.query.shape[3] = r.key.shape[3] = 9; }},
      {"KeyAndValueTokensAgree", Rank4, [](Request& r) { r.value.shape[1] = 7; },
       "value.shape[1] must equal key.shape[1] (6); was 7", [](Request& r) { r.key.shape[1] = r.value.shape[1] = 7; }},
      {"KeyAndValueHeadsAgree", Rank4, [](Request& r) { r.value.shape[2] = 4; },
       "value.shape[2] must equal key.shape[2] (2); was 4", [](Request& r) { r.key.shape[2] = r.value.shape[2] = 4; }},
      {"KvHeadsDivideHeads", Rank4, [](Request& r) { r.key.shape[2] = r.value.shape[2] = 3; },
       "key.shape[2] (kv_heads) must divide query.shape[2] (heads = 4); was 3",
       [](Request& r) { r.key.shape[2] = r.value.shape[2] = 4; }},
      {"HeadsTokensNamesItsOwnAxes", Rank4,
       [](Request& r) {
         r.layout = Layout::kHeadsTokens;
         r.query.shape = {2, 4, 4, 8};
         r.key.shape = {2, 3, 6, 8};
         r.value.shape = {2, 3, 6, 5};
       },
       "key.shape[1] (kv_heads) must divide query.shape[1] (heads = 4); was 3",
       [](Request& r) {
         r.layout = Layout::kHeadsTokens;
         r.key.shape = {2, 2, 6, 8};
         r.value.shape = {2, 2, 6, 5};
       }},
  };
}

std::vector<Rule> LengthRules() {
  return {
      {"OneQueryLengthPerSequence", Rank4,
       [](Request& r) {
         r.query_lengths = {{1, 2, 3}};
       },
       "query_lengths must have one entry for each of 2 sequences; was 3 entries",
       [](Request& r) {
         r.query_lengths = {{1, 2}};
       }},
      {"NoLengthsIsNotAbsence", Rank4, [](Request& r) { r.key_lengths = std::vector<int64_t>(); },
       "key_lengths must have one entry for each of 2 sequences; was 0 entries",
       [](Request& r) { r.key_lengths.reset(); }},
      {"KeyLengthsAreAtMostKvLen", Rank4,
       [](Request& r) {
         r.key_lengths = {{6, 7}};
       },
       "key_lengths[1] must lie between 0 and key.shape[1] = 6; was 7",
       [](Request& r) {
         r.key_lengths = {{6, 0}};
       }},
      {"LengthsAreNotNegative", Rank4,
       [](Request& r) {
         r.query_lengths = {{-1, 4}};
       },
       "query_lengths[0] must lie between 0 and query.shape[1] = 4; was -1",
       [](Request& r) {
         r.query_lengths = {{0, 4}};
       }},
      {"PackedNeedsQueryLengths", Packed, [](Request& r) { r.query_lengths.reset(); },
       "query_lengths must be given in layout PACKED; was absent", [](Request& r) {}},
      {"PackedNeedsKeyLengths", Packed, [](Request& r) { r.key_lengths.reset(); },
       "key_lengths must be given in layout PACKED; was absent", [](Request& r) {}},
      {"PackedLengthsAreOfTheSameSequences", Packed, [](Request& r) { r.key_lengths = {{6}}; },
       "key_lengths must have one entry for each of 2 sequences; was 1 entries",
       [](Request& r) {
         r.key_lengths = {{6, 0}};
       }},
      {"PackedQueryLengthsAddUp", Packed,
       [](Request& r) {
         r.query_lengths = {{1, 2}};
       },
       "query_lengths must add up to query.shape[0] = 4; was 3",
       [](Request& r) {
         r.query_lengths = {{0, 4}};
       }},
      {"PackedKeyLengthsAddUp", Packed,
       [](Request& r) {
         r.key_lengths = {{4, 3}};
       },
       "key_lengths must add up to key.shape[0] = 6; was 7",
       [](Request& r) {
         r.key_lengths = {{3, 3}};
       }},
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

std::vector<Rule> ScoreRules() {
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
      {"MaskIsTheSameInHeadsTokens", Rank4,
       [](Request& r) {
         r.layout = Layout::kHeadsTokens;
         r.query.shape = {2, 2, 4, 8};
         r.key.shape = {2, 2, 6, 8};
         r.value.shape = {2, 2, 6, 5};
         r.bias = View({2, 4, 2, 6});
       },
       "bias.shape[1] must be 2 or 1",
       [](Request& r) {
         r.layout = Layout::kHeadsTokens;
         r.query.shape = {2, 2, 4, 8};
         r.key.shape = {2, 2, 6, 8};
         r.value.shape = {2, 2, 6, 5};
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

class RuleTest : public testing::TestWithParam<Rule> {};

TEST_P(RuleTest, IsEnforcedAndItsNeighbourIsLegal) {
  AttentionRequest broken = GetParam().base();
  GetParam().breaks(broken);
  const absl::Status refused = Validate(broken);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr(GetParam().message));

  AttentionRequest legal = GetParam().base();
  GetParam().keeps(legal);
  const absl::Status accepted = Validate(legal);
  EXPECT_TRUE(accepted.ok()) << accepted;
}

std::string RuleName(const testing::TestParamInfo<Rule>& tested) { return tested.param.name; }

INSTANTIATE_TEST_SUITE_P(Tensors, RuleTest, testing::ValuesIn(TensorRules()), RuleName);
INSTANTIATE_TEST_SUITE_P(Lengths, RuleTest, testing::ValuesIn(LengthRules()), RuleName);
INSTANTIATE_TEST_SUITE_P(Scores, RuleTest, testing::ValuesIn(ScoreRules()), RuleName);
INSTANTIATE_TEST_SUITE_P(Masks, RuleTest, testing::ValuesIn(MaskRules()), RuleName);

// Each limit holds at its value and refuses one past it, naming the flag.
struct Limit {
  std::string name;
  AttentionRequest (*base)();
  AttentionLimits enough;
  AttentionLimits too_few;
  std::string message;
};

AttentionRequest WithWeights() {
  AttentionRequest request = Rank4();
  request.return_weights = true;
  request.return_lse = true;
  return request;
}

class LimitTest : public testing::TestWithParam<Limit> {};

TEST_P(LimitTest, HoldsAtItsValueAndNamesItsFlagPastIt) {
  const absl::Status accepted = Validate(GetParam().base(), GetParam().enough);
  EXPECT_TRUE(accepted.ok()) << accepted;
  const absl::Status refused = Validate(GetParam().base(), GetParam().too_few);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr(GetParam().message));
}

// Output 2*4*4*5, lse 2*4*4, weights 2*4*4*6, 4 bytes each.
INSTANTIATE_TEST_SUITE_P(
    Limits, LimitTest,
    testing::Values(
        Limit{"Tokens",
              Rank4,
              {.max_tokens_per_request = 20},
              {.max_tokens_per_request = 19},
              "query and key tokens of all sequences together must be at most --max_tokens_per_request = 19; was 20"},
        Limit{"PackedTokens",
              Packed,
              {.max_tokens_per_request = 10},
              {.max_tokens_per_request = 9},
              "--max_tokens_per_request = 9; was 10"},
        Limit{"HeadDim",
              Rank4,
              {.max_head_dim = 8},
              {.max_head_dim = 7},
              "query.shape[3] must be at most --max_head_dim = 7; was 8"},
        Limit{"Batch",
              Rank4,
              {.max_batch = 2},
              {.max_batch = 1},
              "query.shape[0] must name at most --max_batch = 1 sequences; was 2"},
        Limit{"PackedBatch",
              Packed,
              {.max_batch = 2},
              {.max_batch = 1},
              "query_lengths must name at most --max_batch = 1 sequences; was 2"},
        Limit{"WeightsBytes",
              WithWeights,
              {.max_weights_bytes = 768},
              {.max_weights_bytes = 767},
              "return_weights must ask for at most --max_weights_bytes = 767; was [2, 4, 4, 6] FLOAT32"},
        Limit{"ReplyBytes",
              WithWeights,
              {.max_message_bytes = 1536},
              {.max_message_bytes = 1535},
              "output, lse and weights together must be at most --max_message_bytes = 1535 bytes; was 1536"}),
    [](const testing::TestParamInfo<Limit>& tested) { return tested.param.name; });

TEST(ValidateAttentionTest, ValueWidthHasTheSameLimit) {
  AttentionRequest request = Rank4();
  request.value.shape[3] = 9;
  EXPECT_THAT(std::string(Validate(request, {.max_head_dim = 8}).message()),
              HasSubstr("value.shape[3] must be at most --max_head_dim = 8; was 9"));
}

TEST(ValidateAttentionTest, EmptyProblemsAreLegal) {
  for (int64_t axis : {0, 1}) {
    AttentionRequest request = WithWeights();
    request.query.shape[axis] = 0;
    if (axis == 0) request.key.shape[0] = request.value.shape[0] = 0;
    absl::StatusOr<AttentionProblem> problem = ValidateAttention(request, {});
    ASSERT_TRUE(problem.ok()) << problem.status();
    EXPECT_TRUE(problem->sequences.empty());
  }
  AttentionRequest no_keys = WithWeights();
  no_keys.key.shape[1] = no_keys.value.shape[1] = 0;
  EXPECT_TRUE(Validate(no_keys).ok());
  const AttentionRequest nothing_packed = {.query = View({0, 1, 8}),
                                           .key = View({0, 1, 8}),
                                           .value = View({0, 1, 8}),
                                           .layout = Layout::kPacked,
                                           .query_lengths = std::vector<int64_t>(),
                                           .key_lengths = std::vector<int64_t>()};
  EXPECT_TRUE(Validate(nothing_packed).ok());
}

// No bytes stand behind the sizes of an empty tensor, so they may be anything; nothing may be done as often as they
// say.
TEST(ValidateAttentionTest, SizesOfEmptyTensorsCostNothing) {
  const int64_t many = int64_t{1} << 40;
  AttentionRequest heads = {
      .query = View({1, 0, many, 8}), .key = View({1, 0, many, 8}), .value = View({1, 0, many, 8}), .alibi = true};
  absl::StatusOr<AttentionProblem> problem = ValidateAttention(heads, {});
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_TRUE(problem->sequences.empty());
  EXPECT_TRUE(problem->alibi_slopes.empty());

  const AttentionRequest batch = {
      .query = View({many, 0, 1, 8}), .key = View({many, 0, 1, 8}), .value = View({many, 0, 1, 8})};
  EXPECT_THAT(std::string(Validate(batch).message()), HasSubstr("--max_batch"));
  const AttentionRequest keys = {
      .query = View({1, 1, 1, 1}), .key = View({1, kLargest / 4, 1, 1}), .value = View({1, kLargest / 4, 1, 1})};
  EXPECT_THAT(std::string(Validate(keys).message()), HasSubstr("--max_tokens_per_request"));
}

TEST(ValidateAttentionTest, RefusesAnAnswerFarLargerThanItsRequest) {
  const AttentionRequest request = {
      .query = View({1, 1024, 4096, 1}), .key = View({1, 1, 1, 1}), .value = View({1, 1, 1, 2048})};
  EXPECT_THAT(std::string(Validate(request).message()), HasSubstr("--max_message_bytes"));
}

TEST(ValidateAttentionTest, EachSequenceAlignsOnItsOwnLengths) {
  AttentionRequest request = Rank4();
  request.causal = true;
  request.alignment = Alignment::kBottomRight;
  request.query_lengths = {{4, 1}};
  request.key_lengths = {{3, 6}};
  const AttentionProblem problem = ValidateAttention(request, {}).value();
  EXPECT_EQ(problem.sequences[0].query_shift, -1);
  EXPECT_EQ(problem.sequences[1].query_shift, 5);
}

TEST(ValidateAttentionTest, SharedMaskDimensionsHaveStrideZero) {
  AttentionRequest request = Rank4();
  request.keep = View({1, 4, 1, 6}, DType::kBool);
  request.bias = View({2, 1, 4, 6});
  const AttentionProblem problem = ValidateAttention(request, {}).value();
  EXPECT_EQ(problem.keep->head_stride, 6);
  EXPECT_EQ(problem.keep->query_stride, 0);
  EXPECT_EQ(problem.sequences[1].keep_begin, 0);
  EXPECT_EQ(problem.bias->head_stride, 0);
  EXPECT_EQ(problem.bias->query_stride, 6);
  EXPECT_EQ(problem.sequences[1].bias_begin, 24);
}

TEST(ValidateAttentionTest, UnsetScaleIsOneOverTheRootOfTheWidth) {
  EXPECT_FLOAT_EQ(ValidateAttention(Rank4(), {})->scale, 1 / std::sqrt(8.0f));
}

TEST(StandardAlibiSlopesTest, FollowThePapersRule) {
  EXPECT_THAT(StandardAlibiSlopes(1), ElementsAre(FloatEq(1.0f / 256)));
  EXPECT_THAT(StandardAlibiSlopes(8),
              ElementsAre(0.5f, 0.25f, 0.125f, 0.0625f, 0.03125f, 0.015625f, 0.0078125f, 0.00390625f));
  // Those of 4 heads, then the first and third of 8.
  EXPECT_THAT(StandardAlibiSlopes(6), ElementsAre(0.25f, 0.0625f, 0.015625f, 0.00390625f, 0.5f, 0.125f));
  // Those of 8 heads, then the first, third, fifth and seventh of 16.
  const float root = std::sqrt(0.5f);
  EXPECT_THAT(StandardAlibiSlopes(12),
              ElementsAre(0.5f, 0.25f, 0.125f, 0.0625f, 0.03125f, 0.015625f, 0.0078125f, 0.00390625f, FloatEq(root),
                          FloatEq(root / 2), FloatEq(root / 4), FloatEq(root / 8)));
}

}  // namespace
}  // namespace triad
