#include "core/attention/item_cost.h"

#include <memory>
#include <vector>

#include "core/attention/fast_attention.h"
#include "gtest/gtest.h"
#include "tests/support/attention_case.h"
#include "tests/support/attention_content.h"

namespace triad {
namespace {

struct Planned {
  double flop = 0;
  double cost = 0;
};

class ItemCostTest : public testing::Test {
 protected:
  Planned Plan(const AttentionOptions& options) const {
    const AttentionContent content = RandomContent(options);
    const AttentionCase attention_case(content);
    Planned planned;
    for (const WorkItem& item : kernel_->Plan(attention_case.problem())) {
      planned.flop += item.flop;
      planned.cost += item.cost;
    }
    return planned;
  }

  const std::unique_ptr<FastAttention> kernel_ = *FastAttention::Create(DetectInstructionSet());
};

TEST_F(ItemCostTest, LongProductsCostTheirFlop) {
  const Planned planned =
      Plan({.heads = 2, .q_len = 512, .kv_len = 512, .qk_head_dim = 128, .v_head_dim = 128, .return_weights = false});
  EXPECT_GT(planned.cost, planned.flop);
  EXPECT_LT(planned.cost, 1.1 * planned.flop);
}

TEST_F(ItemCostTest, ScoresCostThoughProductsAreShort) {
  AttentionOptions options = {.q_len = 400, .kv_len = 400, .qk_head_dim = 1, .v_head_dim = 1, .return_weights = false};
  const Planned plain = Plan(options);
  EXPECT_GT(plain.cost, 30.0 * 400 * 400);
  AttentionOptions more = options;
  more.logit_softcap = 5;
  const double capped = Plan(more).cost;
  EXPECT_GT(capped, 2 * plain.cost);
  more.bias = MaskSharing{};
  EXPECT_GT(Plan(more).cost, capped);
  more = options;
  more.return_weights = true;
  EXPECT_GT(Plan(more).cost, 2 * plain.cost);
}

TEST_F(ItemCostTest, EveryItemCosts) {
  const AttentionOptions options = {
      .batch = 500, .q_len = 1, .kv_len = 1, .qk_head_dim = 1, .v_head_dim = 1, .return_weights = false};
  EXPECT_GT(Plan(options).cost, 500 * 1e4);
}

TEST_F(ItemCostTest, FewRowsCostWhatMemoryTakes) {
  AttentionOptions options = {.q_len = 1, .kv_len = 2000, .qk_head_dim = 64, .v_head_dim = 64, .return_weights = false};
  const double of_one = Plan(options).cost;
  options.q_len = 4;
  EXPECT_NEAR(Plan(options).cost, of_one, 0.01 * of_one);
  options.q_len = 16;
  EXPECT_GT(Plan(options).cost, 0.9 * of_one);
}

}  // namespace
}  // namespace triad
