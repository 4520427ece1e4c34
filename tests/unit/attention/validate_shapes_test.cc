// The rules on query, key, value and the lengths.
#include <vector>

#include "tests/support/extreme_values.h"
#include "tests/unit/attention/validate_rules.h"

namespace triad {
namespace {

using Request = AttentionRequest;

std::vector<Rule> TypeAndRankRules() {
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
  };
}

std::vector<Rule> SizeRules() {
  return {
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
  };
}

std::vector<Rule> AgreementRules() {
  return {
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
      {"HeadsTokensNamesItsOwnAxes", HeadsTokens, [](Request& r) { r.key.shape[1] = r.value.shape[1] = 3; },
       "key.shape[1] (kv_heads) must divide query.shape[1] (heads = 2); was 3",
       [](Request& r) { r.key.shape[1] = r.value.shape[1] = 1; }},
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
  };
}

class ShapeRuleTest : public RuleTest {};

TEST_P(ShapeRuleTest, IsEnforcedAndItsNeighbourIsLegal) { CheckRule(); }

INSTANTIATE_TEST_SUITE_P(TypeAndRank, ShapeRuleTest, testing::ValuesIn(TypeAndRankRules()), RuleName);
INSTANTIATE_TEST_SUITE_P(Size, ShapeRuleTest, testing::ValuesIn(SizeRules()), RuleName);
INSTANTIATE_TEST_SUITE_P(Agreement, ShapeRuleTest, testing::ValuesIn(AgreementRules()), RuleName);
INSTANTIATE_TEST_SUITE_P(Length, ShapeRuleTest, testing::ValuesIn(LengthRules()), RuleName);

}  // namespace
}  // namespace triad
