// Sizes: each length at and around the powers of two that tiles are made of, each width, each sharing of kv heads, with
// the options taking turns.
#include <cstdint>
#include <utility>

#include "tests/conformance/conformance_test.h"

namespace triad {
namespace {

class SweepTest : public ConformanceTest {
 protected:
  // The next of a cycle of option sets, so that every size meets different ones.
  AttentionOptions NextOptions() {
    const uint64_t turn = turn_++;
    AttentionOptions options = {.seed = turn, .layout = static_cast<Layout>(turn % 3)};
    options.alignment = turn % 2 == 0 ? Alignment::kTopLeft : Alignment::kBottomRight;
    options.causal = turn % 4 >= 2;
    if (turn % 5 == 1) options.window = Window{.left = 17, .right = 3};
    if (turn % 5 == 2) options.keep = MaskSharing{.heads = true};
    if (turn % 5 == 3) options.bias = MaskSharing{.batch = true};
    if (turn % 7 == 4) options.alibi = true;
    options.return_lse = turn % 3 != 0;
    options.return_weights = turn % 3 != 1;
    return options;
  }

 private:
  uint64_t turn_ = 1;
};

constexpr int64_t kLengths[] = {1,   2,   15,  16,  17,  31,  33,  63,  64,  65,  95, 97,
                                127, 128, 129, 191, 193, 255, 256, 257, 511, 512, 513};

TEST_P(SweepTest, LengthsAroundTilesAgree) {
  for (int64_t length : kLengths) {
    const std::pair<int64_t, int64_t> sizes[] = {{1, length},      {2, length},  {length, 1},         {length, 17},
                                                 {length, length}, {65, length}, {length, length + 1}};
    for (const auto& [q_len, kv_len] : sizes) {
      AttentionOptions options = NextOptions();
      options.q_len = q_len;
      options.kv_len = kv_len;
      EXPECT_TRUE(Agrees(Content(options)));
    }
  }
}

TEST_P(SweepTest, SeveralBlocksOfKeysAndQueriesAgree) {
  for (const auto& [q_len, kv_len] :
       {std::pair<int64_t, int64_t>{3, 1023}, {3, 1025}, {1, 2049}, {513, 700}, {1025, 40}}) {
    AttentionOptions options = NextOptions();
    options.q_len = q_len;
    options.kv_len = kv_len;
    options.heads = 2;
    EXPECT_TRUE(Agrees(Content(options)));
  }
}

constexpr int64_t kWidths[] = {1, 3, 8, 31, 32, 33, 64, 80, 128, 192, 256};

TEST_P(SweepTest, WidthsAgreeAlsoWhenTheyDiffer) {
  for (int64_t width : kWidths) {
    const std::pair<int64_t, int64_t> widths[] = {{width, width}, {width, 1}, {1, width}, {width, 33}, {64, width}};
    for (const auto& [qk_head_dim, v_head_dim] : widths) {
      AttentionOptions options = NextOptions();
      options.qk_head_dim = qk_head_dim;
      options.v_head_dim = v_head_dim;
      options.q_len = 19;
      options.kv_len = 70;
      EXPECT_TRUE(Agrees(Content(options)));
    }
  }
}

TEST_P(SweepTest, TheWidestHeadsAgree) {
  AttentionOptions options = NextOptions();
  options.qk_head_dim = options.v_head_dim = 2048;
  options.q_len = 5;
  options.kv_len = 67;
  EXPECT_TRUE(Agrees(Content(options)));
}

TEST_P(SweepTest, SharedKvHeadsAgree) {
  for (const auto& [heads, kv_heads] :
       {std::pair<int64_t, int64_t>{1, 1}, {4, 4}, {4, 2}, {8, 1}, {6, 2}, {12, 4}, {33, 1}}) {
    for (const auto& [q_len, kv_len] : {std::pair<int64_t, int64_t>{1, 40}, {7, 40}, {65, 129}}) {
      AttentionOptions options = NextOptions();
      options.batch = 2;
      options.heads = heads;
      options.kv_heads = kv_heads;
      options.q_len = q_len;
      options.kv_len = kv_len;
      EXPECT_TRUE(Agrees(Content(options)));
    }
  }
}

TEST_P(SweepTest, QueryHeadsReadTheirKvHeadInRuns) {
  AttentionContent content = Content({.heads = 4, .kv_heads = 2, .q_len = 3, .kv_len = 5});
  const Answer before = Attend(content);
  for (int64_t j = 0; j < 5; ++j) content.value.at(0, 1, j, 0) += 1;
  const Answer after = Attend(content);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(after.output.at(0, 0, i, 0), before.output.at(0, 0, i, 0));
    EXPECT_EQ(after.output.at(0, 1, i, 0), before.output.at(0, 1, i, 0));
    EXPECT_NE(after.output.at(0, 2, i, 0), before.output.at(0, 2, i, 0));
    EXPECT_NE(after.output.at(0, 3, i, 0), before.output.at(0, 3, i, 0));
  }
}

TEST_P(SweepTest, RaggedBatchesAgree) {
  for (Layout layout : {Layout::kTokensHeads, Layout::kHeadsTokens, Layout::kPacked}) {
    for (Alignment alignment : {Alignment::kTopLeft, Alignment::kBottomRight}) {
      AttentionContent content = Content({.layout = layout,
                                          .batch = 5,
                                          .heads = 4,
                                          .kv_heads = 2,
                                          .q_len = 70,
                                          .kv_len = 131,
                                          .causal = true,
                                          .alignment = alignment,
                                          .query_lengths = {{70, 0, 1, 33, 64}},
                                          .key_lengths = {{131, 40, 0, 20, 128}}});
      PoisonHidden(content);
      EXPECT_TRUE(Agrees(content));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPath, SweepTest, EveryPathAndType(), PathAndTypeName);

}  // namespace
}  // namespace triad
