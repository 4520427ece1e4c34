// Causal, alignment and sliding windows: which keys a query sees, read off the weights.
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/conformance/conformance_test.h"

namespace triad {
namespace {

class CausalWindowTest : public ConformanceTest {
 protected:
  // The keys with weight, for each query of head 0: "0-3,0-4"; "-" for none.
  std::string Seen(const AttentionOptions& options, int64_t b = 0) const {
    AttentionContent content = Content(options);
    PoisonHidden(content);
    const Answer answer = Attend(content);
    EXPECT_TRUE(MatchesReference(content, answer));
    std::string seen;
    for (int64_t i = 0; i < content.query_length(b); ++i) {
      int64_t first = -1;
      int64_t last = -1;
      for (int64_t j = 0; j < options.kv_len; ++j) {
        if (answer.weights.at(b, 0, i, j) == 0) continue;
        if (first < 0) first = j;
        last = j;
      }
      absl::StrAppend(&seen, i == 0 ? "" : ",", first < 0 ? "-" : absl::StrCat(first, "-", last));
    }
    return seen;
  }
};

constexpr Alignment kTop = Alignment::kTopLeft;
constexpr Alignment kBottom = Alignment::kBottomRight;

TEST_P(CausalWindowTest, DecodeSeesTheWholeCacheBottomRight) {
  EXPECT_EQ(Seen({.q_len = 1, .kv_len = 8, .causal = true, .alignment = kBottom}), "0-7");
  EXPECT_EQ(Seen({.q_len = 1, .kv_len = 8, .causal = true, .alignment = kTop}), "0-0");
}

TEST_P(CausalWindowTest, TwoQueriesOverFiveKeys) {
  EXPECT_EQ(Seen({.q_len = 2, .kv_len = 5, .causal = true, .alignment = kBottom}), "0-3,0-4");
  EXPECT_EQ(Seen({.q_len = 2, .kv_len = 5, .causal = true, .alignment = kTop}), "0-0,0-1");
}

TEST_P(CausalWindowTest, MoreQueriesThanKeysLeaveTheFirstWithoutAny) {
  EXPECT_EQ(Seen({.q_len = 5, .kv_len = 2, .causal = true, .alignment = kBottom}), "-,-,-,0-0,0-1");
  EXPECT_EQ(Seen({.q_len = 4, .kv_len = 2, .causal = true, .alignment = kTop}), "0-0,0-1,0-1,0-1");
}

TEST_P(CausalWindowTest, EachSequenceAlignsOnItsOwnLength) {
  AttentionOptions options = {
      .batch = 2, .q_len = 2, .kv_len = 8, .causal = true, .alignment = kBottom, .key_lengths = {{3, 7}}};
  EXPECT_EQ(Seen(options, 0), "0-1,0-2");
  EXPECT_EQ(Seen(options, 1), "0-5,0-6");
  options.query_lengths = {{1, 2}};
  EXPECT_EQ(Seen(options, 0), "0-2");
}

TEST_P(CausalWindowTest, CausalWithLeftSeesItselfAndSoManyBefore) {
  EXPECT_EQ(Seen({.q_len = 4, .kv_len = 4, .causal = true, .window = Window{.left = 0}}), "0-0,1-1,2-2,3-3");
  EXPECT_EQ(Seen({.q_len = 4, .kv_len = 4, .causal = true, .window = Window{.left = 1}}), "0-0,0-1,1-2,2-3");
}

TEST_P(CausalWindowTest, WindowedDecodeSlidesWithTheCache) {
  EXPECT_EQ(Seen({.q_len = 2, .kv_len = 6, .causal = true, .alignment = kBottom, .window = Window{.left = 2}}),
            "2-4,3-5");
}

TEST_P(CausalWindowTest, WithoutCausalTheRightIsUnboundedUnlessGiven) {
  EXPECT_EQ(Seen({.q_len = 4, .kv_len = 4, .window = Window{.left = 1}}), "0-3,0-3,1-3,2-3");
  EXPECT_EQ(Seen({.q_len = 4, .kv_len = 4, .window = Window{.right = 1}}), "0-1,0-2,0-3,0-3");
  EXPECT_EQ(Seen({.q_len = 4, .kv_len = 4, .window = Window{.left = 1, .right = 0}}), "0-0,0-1,1-2,2-3");
}

TEST_P(CausalWindowTest, HugeWindowsAreUnbounded) {
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(
      Seen({.q_len = 3, .kv_len = 2, .alignment = kBottom, .window = Window{.left = huge - 1, .right = huge - 1}}),
      "0-1,0-1,0-1");
  EXPECT_EQ(Seen({.q_len = 2, .kv_len = 3, .causal = true, .alignment = kBottom, .window = Window{.left = huge}}),
            "0-1,0-2");
}

TEST_P(CausalWindowTest, WindowsThatEndInsideAndBetweenTilesAgree) {
  for (int64_t left : {0, 1, 63, 64, 65, 130}) {
    for (int64_t right : {0, 1, 64}) {
      AttentionContent content = Content({.seed = static_cast<uint64_t>(100 * left + right),
                                          .heads = 2,
                                          .q_len = 150,
                                          .kv_len = 270,
                                          .alignment = kBottom,
                                          .window = Window{.left = left, .right = right},
                                          .return_weights = false});
      PoisonHidden(content);
      EXPECT_TRUE(Agrees(content));
    }
  }
}

// A poisoned key at every place in turn: it reaches the rows that see it, in the very tile that the diagonal crosses,
// and no other.
TEST_P(CausalWindowTest, ALaterKeyThatIsNaNReachesNoEarlierRow) {
  for (const auto& [q_len, kv_len] : {std::pair<int64_t, int64_t>{80, 80}, {300, 20}, {33, 200}}) {
    for (int64_t j = 0; j < kv_len; j += 7) {
      AttentionContent content = Content({.heads = 2,
                                          .kv_heads = 2,
                                          .q_len = q_len,
                                          .kv_len = kv_len,
                                          .qk_head_dim = 5,
                                          .v_head_dim = 3,
                                          .causal = true,
                                          .alignment = kBottom,
                                          .return_weights = false});
      content.key.at(0, 0, j, 1) = std::numeric_limits<float>::quiet_NaN();
      content.value.at(0, 1, j, 2) = std::numeric_limits<float>::infinity();
      EXPECT_TRUE(Agrees(content)) << "key " << j;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryPath, CausalWindowTest, EveryPathAndType(), PathAndTypeName);

}  // namespace
}  // namespace triad
