#include "core/attention/validate_attention.h"
#include "tests/support/extreme_values.h"

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/attention/validate_rules.h"

namespace triad {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;

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
              "return_weights must ask for at most --max_weights_bytes = 767; was [2, 4, 4, 6] FLOAT32, 768 bytes"},
        Limit{"ReplyBytes",
              WithWeights,
              {.max_message_bytes = 1536},
              {.max_message_bytes = 1535},
              "output, lse and weights together must be at most 1535 bytes, to fit --max_message_bytes; was 1536"}),
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
