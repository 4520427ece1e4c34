#include "core/attention/attention_problem.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace triad {
namespace {

constexpr int64_t kAny = AttentionProblem::kUnbounded;
constexpr int64_t kHuge = std::numeric_limits<int64_t>::max() - 1;

struct RangeCase {
  const char* name;
  bool causal;
  int64_t left;
  int64_t right;
  int64_t query_length;
  int64_t key_length;
  int64_t shift;
  int64_t i;
  int64_t begin;
  int64_t end;
};

class VisibleKeysTest : public testing::TestWithParam<RangeCase> {};

TEST_P(VisibleKeysTest, AreThoseThatLengthsCausalAndWindowLeave) {
  const RangeCase& c = GetParam();
  AttentionProblem problem;
  problem.causal = c.causal;
  problem.window_left = c.left;
  problem.window_right = c.right;
  const Sequence sequence = {.query_length = c.query_length, .key_length = c.key_length, .query_shift = c.shift};
  const KeyRange range = problem.VisibleKeys(sequence, c.i);
  if (c.begin == c.end) {
    EXPECT_EQ(range.begin, range.end);
  } else {
    EXPECT_EQ(range.begin, c.begin);
    EXPECT_EQ(range.end, c.end);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, VisibleKeysTest,
    testing::Values(RangeCase{"EverythingWithoutRules", false, kAny, kAny, 2, 5, 0, 1, 0, 5},
                    RangeCase{"DecodeBottomRightSeesAll", true, kAny, kAny, 1, 8, 7, 0, 0, 8},
                    RangeCase{"DecodeTopLeftSeesTheFirst", true, kAny, kAny, 1, 8, 0, 0, 0, 1},
                    RangeCase{"FirstOfTwoBottomRight", true, kAny, kAny, 2, 5, 3, 0, 0, 4},
                    RangeCase{"SecondOfTwoBottomRight", true, kAny, kAny, 2, 5, 3, 1, 0, 5},
                    RangeCase{"FirstOfTwoTopLeft", true, kAny, kAny, 2, 5, 0, 0, 0, 1},
                    RangeCase{"SecondOfTwoTopLeft", true, kAny, kAny, 2, 5, 0, 1, 0, 2},
                    RangeCase{"CausalLeftZeroSeesItself", true, 0, kAny, 8, 8, 0, 3, 3, 4},
                    RangeCase{"CausalLeftOneSeesTheOneBefore", true, 1, kAny, 8, 8, 0, 3, 2, 4},
                    RangeCase{"FirstOfWindowedDecode", true, 2, kAny, 2, 6, 4, 0, 2, 5},
                    RangeCase{"SecondOfWindowedDecode", true, 2, kAny, 2, 6, 4, 1, 3, 6},
                    RangeCase{"WindowToTheRight", false, 1, 2, 8, 8, 0, 3, 2, 6},
                    RangeCase{"WindowRightIsCutByTheLength", false, kAny, 2, 8, 8, 0, 7, 0, 8},
                    RangeCase{"CausalBeatsWindowRight", true, kAny, 2, 8, 8, 0, 3, 0, 4},
                    RangeCase{"NegativePositionSeesNothingUnderCausal", true, kAny, kAny, 8, 3, -5, 4, 0, 0},
                    RangeCase{"LastOfNegativeShiftSeesAll", true, kAny, kAny, 8, 3, -5, 7, 0, 3},
                    RangeCase{"NegativePositionInsideAWindowToTheRight", false, 0, 3, 8, 4, -4, 2, 0, 2},
                    RangeCase{"WindowBeforeTheFirstKey", false, kAny, 0, 8, 4, -4, 2, 0, 0},
                    RangeCase{"WindowAfterTheLastKey", false, 1, kAny, 8, 4, 0, 7, 4, 4},
                    RangeCase{"HugeWindowHidesNothing", false, kHuge, kHuge, 8, 4, -4, 0, 0, 4},
                    RangeCase{"HugeWindowAtANegativePosition", true, kHuge, kHuge, 8, 4, -4, 5, 0, 2},
                    RangeCase{"NoKeys", true, 3, 3, 2, 0, -2, 1, 0, 0}),
    [](const testing::TestParamInfo<RangeCase>& tested) { return tested.param.name; });

TEST(FlopNeededTest, CountsVisiblePairsLikeALoopOverQueries) {
  for (int64_t left : {int64_t{0}, int64_t{1}, int64_t{4}, kHuge, kAny}) {
    for (int64_t right : {int64_t{0}, int64_t{2}, kHuge, kAny}) {
      for (int64_t shift : {-9, -3, 0, 2, 11}) {
        for (int64_t keys : {0, 1, 5, 12}) {
          for (bool causal : {false, true}) {
            AttentionProblem problem;
            problem.heads = 6;
            problem.kv_heads = 2;
            problem.qk_head_dim = 3;
            problem.v_head_dim = 5;
            problem.causal = causal;
            problem.window_left = left;
            problem.window_right = right;
            const Sequence sequence = {.q_len = 9, .query_length = 7, .key_length = keys, .query_shift = shift};
            problem.sequences = {sequence, sequence};
            double pairs = 0;
            for (int64_t i = 0; i < sequence.query_length; ++i) {
              const KeyRange range = problem.VisibleKeys(sequence, i);
              pairs += static_cast<double>(range.end - range.begin);
            }
            EXPECT_EQ(FlopNeeded(problem), 2 * pairs * 6 * 2 * (3 + 5))
                << "left " << left << " right " << right << " shift " << shift << " keys " << keys << " causal "
                << causal;
          }
        }
      }
    }
  }
}

TEST(FlopNeededTest, HoldsMoreThanInt64) {
  AttentionProblem problem;
  problem.heads = 1024;
  problem.qk_head_dim = problem.v_head_dim = 2048;
  const int64_t tokens = int64_t{1} << 22;
  problem.sequences = {{.q_len = tokens, .query_length = tokens, .kv_len = tokens, .key_length = tokens}};
  EXPECT_GT(FlopNeeded(problem), static_cast<double>(std::numeric_limits<int64_t>::max()));
}

}  // namespace
}  // namespace triad
