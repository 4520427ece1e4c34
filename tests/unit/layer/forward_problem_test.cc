#include "core/layer/forward_problem.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/layer_case.h"

namespace triad {
namespace {

using testing::HasSubstr;

// Validation reads no data: shapes are enough.
TensorView View(Shape shape, DType dtype = DType::kF32) { return {.dtype = dtype, .shape = std::move(shape)}; }

LayerSpec SelfSpec() { return WithDefaults({.model_dim = 64, .output_dim = 10, .heads = 4, .kv_heads = 2}); }
LayerSpec CrossSpec() { return WithDefaults({.model_dim = 64, .context_dim = 48, .heads = 4}); }
LayerSpec RotarySpecOfFour() { return WithDefaults({.model_dim = 64, .heads = 4, .rotary = {.dim = 4}}); }

ForwardRequest Padded() { return {.input = View({3, 5, 64})}; }
ForwardRequest Packed() {
  return {.input = View({9, 64}), .layout = Layout::kPacked, .lengths = std::vector<int64_t>{4, 0, 5}};
}
ForwardRequest Cross() { return {.input = View({3, 5, 64}), .context = View({3, 7, 48})}; }

TEST(ValidateForwardTest, CountsRowsWithoutPadding) {
  ForwardRequest request = Padded();
  request.lengths = {4, 0, 5};
  const auto problem = ValidateForward(request, SelfSpec(), {});
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ(problem->tokens, 9);
  EXPECT_EQ(problem->output_rows, 15);
  EXPECT_EQ(problem->output_shape, (Shape{3, 5, 10}));
  ASSERT_EQ(problem->input_rows.size(), 2u);
  EXPECT_EQ(problem->input_rows[1].first_row, 10);
  EXPECT_EQ(problem->input_rows[1].rows, 5);
  const std::vector<Sequence>& sequences = problem->attention.sequences;
  ASSERT_EQ(sequences.size(), 2u);
  EXPECT_EQ(sequences[1].query_begin, 4);
  EXPECT_EQ(sequences[1].key_begin, 4);
  EXPECT_EQ(sequences[1].output_begin, 4);
  EXPECT_EQ(sequences[1].q_len, 5);
  EXPECT_EQ(sequences[1].key_length, 5);
}

TEST(ValidateForwardTest, KeepsTheRequestsPlacesOfLseAndWeights) {
  ForwardRequest request = Padded();
  request.lengths = {4, 0, 5};
  request.return_lse = request.return_weights = true;
  const auto problem = ValidateForward(request, SelfSpec(), {});
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ(problem->attention.lse_shape, (Shape{3, 4, 5}));
  EXPECT_EQ(problem->attention.weights_shape, (Shape{3, 4, 5, 5}));
  EXPECT_EQ(problem->attention.sequences[1].lse_begin, 2 * 4 * 5);
  EXPECT_EQ(problem->attention.sequences[1].weights_begin, 2 * 4 * 5 * 5);
}

TEST(ValidateForwardTest, CountsPackedRowsAndSkipsEmptySequences) {
  const auto problem = ValidateForward(Packed(), SelfSpec(), {});
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ(problem->output_shape, (Shape{9, 10}));
  ASSERT_EQ(problem->attention.sequences.size(), 2u);
  EXPECT_EQ(problem->input_rows[1].first_row, 4);
  EXPECT_EQ(problem->attention.sequences[1].query_begin, 4);
}

TEST(ValidateForwardTest, CountsContextRowsApart) {
  ForwardRequest request = Cross();
  request.context_lengths = {7, 0, 2};
  const auto problem = ValidateForward(request, CrossSpec(), {});
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ(problem->tokens, 15);
  EXPECT_EQ(problem->context_tokens, 9);
  ASSERT_EQ(problem->context_rows.size(), 2u);
  EXPECT_EQ(problem->context_rows[1].first_row, 14);
  EXPECT_EQ(problem->attention.sequences[1].key_length, 0);
  EXPECT_EQ(problem->attention.sequences[2].key_begin, 7);
  EXPECT_EQ(problem->attention.sequences[2].query_begin, 10);
}

TEST(ValidateForwardTest, GivesEachSequenceItsOffset) {
  ForwardRequest request = Padded();
  request.position_offsets = {7, 8, 9};
  const auto problem = ValidateForward(request, RotarySpecOfFour(), {});
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ(problem->input_rows[2].position_offset, 9);
}

TEST(ValidateForwardTest, ComputesInTheLayersTypeAndAnswersInTheRequests) {
  LayerSpec spec = SelfSpec();
  spec.compute = DType::kBf16;
  ForwardRequest request = Padded();
  request.input.dtype = DType::kF16;
  const auto problem = ValidateForward(request, spec, {});
  ASSERT_TRUE(problem.ok()) << problem.status();
  EXPECT_EQ(problem->dtype, DType::kF16);
  EXPECT_EQ(problem->attention.dtype, DType::kBf16);
}

struct Refusal {
  const char* name;
  std::function<ForwardRequest()> request;
  LayerSpec spec;
  const char* message;
  AttentionLimits limits = {};
};

template <class Change>
std::function<ForwardRequest()> With(ForwardRequest (*make)(), Change change) {
  return [=] {
    ForwardRequest request = make();
    change(request);
    return request;
  };
}

std::vector<Refusal> InputRefusals() {
  using R = ForwardRequest&;
  return {
      {"Layout", With(Padded, [](R r) { r.layout = Layout::kHeadsTokens; }), SelfSpec(),
       "layout must be TOKENS_HEADS or PACKED: hidden states have no heads; was HEADS_TOKENS"},
      {"Type", With(Padded, [](R r) { r.input.dtype = DType::kBool; }), SelfSpec(),
       "input.dtype must be FLOAT32, BFLOAT16 or FLOAT16; was BOOL"},
      {"Rank",
       With(Padded,
            [](R r) {
              r.input.shape = {5, 64};
            }),
       SelfSpec(), "input.shape must have rank 3 ([batch, tokens, model_dim]) in layout TOKENS_HEADS; was [5, 64]"},
      {"PackedRank",
       With(Packed,
            [](R r) {
              r.input.shape = {1, 9, 64};
            }),
       SelfSpec(), "input.shape must have rank 2"},
      {"Negative",
       With(Padded,
            [](R r) {
              r.input.shape = {3, -1, 64};
            }),
       SelfSpec(), "input.shape[1] must be >= 0; was -1"},
      {"Width",
       With(Padded,
            [](R r) {
              r.input.shape = {3, 5, 63};
            }),
       SelfSpec(), "input.shape[2] must be the layer's model_dim = 64; was 63"},
      {"Bytes",
       With(Padded,
            [](R r) {
              r.input.shape = {0, int64_t{1} << 57, 64};
            }),
       SelfSpec(), "input.shape must describe fewer than 2^63 bytes"},
  };
}

std::vector<Refusal> LengthRefusals() {
  using R = ForwardRequest&;
  return {
      {"PackedLengths", With(Packed, [](R r) { r.lengths.reset(); }), SelfSpec(),
       "lengths must be given in layout PACKED; was absent"},
      {"LengthCount",
       With(Padded,
            [](R r) {
              r.lengths = {1, 2};
            }),
       SelfSpec(), "lengths must have one entry for each of 3 sequences; was 2 entries"},
      {"LengthRange",
       With(Padded,
            [](R r) {
              r.lengths = {1, 6, 2};
            }),
       SelfSpec(), "lengths[1] must lie between 0 and input.shape[1] = 5; was 6"},
      {"LengthNegative",
       With(Packed,
            [](R r) {
              r.lengths = {9, -1, 1};
            }),
       SelfSpec(), "lengths[1] must lie between 0"},
      {"LengthSum",
       With(Packed,
            [](R r) {
              r.lengths = {4, 4};
            }),
       SelfSpec(), "lengths must add up to input.shape[0] = 9; was 8"},
  };
}

std::vector<Refusal> LimitRefusals() {
  using R = ForwardRequest&;
  return {
      {"Batch",
       Padded,
       SelfSpec(),
       "input.shape[0] must name at most --max_batch = 2 sequences; was 3",
       {.max_batch = 2}},
      {"Tokens", Padded, SelfSpec(), "--max_tokens_per_request = 29", {.max_tokens_per_request = 29}},
      {"WeightsBytes",
       With(Padded, [](R r) { r.return_weights = true; }),
       SelfSpec(),
       "--max_weights_bytes = 100",
       {.max_weights_bytes = 100}},
      {"ReplyBytes",
       Padded,
       SelfSpec(),
       "output, lse and weights together must be at most 599 bytes, to fit --max_message_bytes; was 600",
       {.max_message_bytes = 599}},
  };
}

std::vector<Refusal> ContextRefusals() {
  using R = ForwardRequest&;
  return {
      {"ContextOfSelf", With(Cross, [](R) {}), SelfSpec(),
       "context must be absent: the layer is self-attention; was present"},
      {"ContextLengthsOfSelf",
       With(Padded,
            [](R r) {
              r.context_lengths = {1, 2, 3};
            }),
       SelfSpec(), "context_lengths must be absent without a context; was present"},
      {"ContextMissing", Padded, CrossSpec(), "context must be given: the layer is cross-attention; was absent"},
      {"ContextWidth",
       With(Cross,
            [](R r) {
              r.context->shape = {3, 7, 64};
            }),
       CrossSpec(), "context.shape[2] must be the layer's context_dim = 48; was 64"},
      {"ContextBatch",
       With(Cross,
            [](R r) {
              r.context->shape = {2, 7, 48};
            }),
       CrossSpec(), "context.shape[0] must equal input.shape[0] (3); was 2"},
      {"ContextType", With(Cross, [](R r) { r.context->dtype = DType::kBf16; }), CrossSpec(),
       "context.dtype must equal input.dtype (FLOAT32); was BFLOAT16"},
      {"ContextLength",
       With(Cross,
            [](R r) {
              r.context_lengths = {1, 2, 8};
            }),
       CrossSpec(), "context_lengths[2] must lie between 0 and context.shape[1] = 7; was 8"},
      {"PackedContextLengths",
       [] {
         ForwardRequest request = Packed();
         request.context = View({4, 48});
         return request;
       },
       CrossSpec(), "context_lengths must be given in layout PACKED; was absent"},
  };
}

std::vector<Refusal> OffsetAndMaskRefusals() {
  using R = ForwardRequest&;
  return {
      {"OffsetsWithoutRotary",
       With(Padded,
            [](R r) {
              r.position_offsets = {0, 0, 0};
            }),
       SelfSpec(), "position_offsets must be absent: the layer has no rotary embedding; was 3 entries"},
      {"OffsetsWithContext",
       With(Cross,
            [](R r) {
              r.position_offsets = {0, 0, 0};
            }),
       CrossSpec(), "position_offsets must be absent"},
      {"OffsetCount", With(Padded, [](R r) { r.position_offsets = {0}; }), RotarySpecOfFour(),
       "position_offsets must have one entry for each of 3 sequences; was 1 entries"},
      {"OffsetNegative",
       With(Padded,
            [](R r) {
              r.position_offsets = {0, -1, 0};
            }),
       RotarySpecOfFour(), "position_offsets[1] must lie between 0 and 2^40 = 1099511627776; was -1"},
      {"OffsetHuge",
       With(Padded,
            [](R r) {
              r.position_offsets = {0, 0, (int64_t{1} << 40) + 1};
            }),
       RotarySpecOfFour(), "position_offsets[2] must lie between"},
      {"KeepShape",
       With(Padded,
            [](R r) {
              r.keep = View({3, 4, 5, 4}, DType::kBool);
            }),
       SelfSpec(), "keep.shape[3] must be 5"},
      {"PackedBiasRank",
       With(Packed,
            [](R r) {
              r.bias = View({1, 4, 9, 5});
            }),
       SelfSpec(), "bias.shape must have rank 3"},
  };
}

class ForwardRefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(ForwardRefusalTest, NamesFieldRuleAndValue) {
  const Refusal& refusal = GetParam();
  const absl::Status status = ValidateForward(refusal.request(), refusal.spec, refusal.limits).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(refusal.message));
}

std::string NameOf(const testing::TestParamInfo<Refusal>& tested) { return tested.param.name; }

INSTANTIATE_TEST_SUITE_P(Input, ForwardRefusalTest, testing::ValuesIn(InputRefusals()), NameOf);
INSTANTIATE_TEST_SUITE_P(Lengths, ForwardRefusalTest, testing::ValuesIn(LengthRefusals()), NameOf);
INSTANTIATE_TEST_SUITE_P(Limits, ForwardRefusalTest, testing::ValuesIn(LimitRefusals()), NameOf);
INSTANTIATE_TEST_SUITE_P(Context, ForwardRefusalTest, testing::ValuesIn(ContextRefusals()), NameOf);
INSTANTIATE_TEST_SUITE_P(OffsetsAndMasks, ForwardRefusalTest, testing::ValuesIn(OffsetAndMaskRefusals()), NameOf);

TEST(ValidateForwardTest, TheLayersHeadsAreNotTheRequestsToBound) {
  EXPECT_TRUE(ValidateForward(Padded(), SelfSpec(), {.max_head_dim = 1}).ok());
}

TEST(FlopNeededTest, CountsProjectionsOfRowsThatCountAndTheAttention) {
  ForwardRequest request = Padded();
  request.lengths = {4, 0, 5};
  const LayerSpec spec = SelfSpec();
  const auto problem = ValidateForward(request, spec, {});
  ASSERT_TRUE(problem.ok());
  const double projections = 2.0 * 9 * 64 * (64 + 32 + 32) + 2.0 * 9 * 64 * 10;
  const double attention = 2.0 * (16 + 16) * 4 * (4 * 4 + 5 * 5);
  EXPECT_EQ(FlopNeeded(*problem, spec), projections + attention);
}

TEST(FlopNeededTest, CountsContextRowsForKeysAndValues) {
  const auto problem = ValidateForward(Cross(), CrossSpec(), {});
  ASSERT_TRUE(problem.ok());
  const double projections = 2.0 * 15 * 64 * 64 + 2.0 * 21 * 48 * 128 + 2.0 * 15 * 64 * 64;
  EXPECT_EQ(FlopNeeded(*problem, CrossSpec()), projections + 2.0 * 32 * 4 * 3 * 5 * 7);
}

TEST(ActivationBytesTest, HoldsEveryRowOfQueriesKeysValuesAndHeads) {
  const auto problem = ValidateForward(Padded(), SelfSpec(), {});
  ASSERT_TRUE(problem.ok());
  EXPECT_GE(ActivationBytes(*problem, SelfSpec()), 15 * (64 + 32 + 32 + 64) * 4);
  EXPECT_LE(ActivationBytes(*problem, SelfSpec()), 2 * 15 * (64 + 32 + 32 + 64) * 4);
}

}  // namespace
}  // namespace triad
