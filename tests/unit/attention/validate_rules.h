// Tables of validation rules: for each, a change that breaks it, the message, and the nearest change that does not.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/validate_attention.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace triad {

// Validation reads no element, so these views need no data.
inline TensorView View(Shape shape, DType dtype = DType::kF32) { return {.dtype = dtype, .shape = std::move(shape)}; }

// batch 2, q_len 4, kv_len 6, heads 4, kv_heads 2, qk_head_dim 8, v_head_dim 5.
inline AttentionRequest Rank4() {
  return {.query = View({2, 4, 4, 8}), .key = View({2, 6, 2, 8}), .value = View({2, 6, 2, 5})};
}

// The same in HEADS_TOKENS, with 2 heads.
inline AttentionRequest HeadsTokens() {
  return {.query = View({2, 2, 4, 8}),
          .key = View({2, 2, 6, 8}),
          .value = View({2, 2, 6, 5}),
          .layout = Layout::kHeadsTokens};
}

// The same tokens end to end: one sequence with 1 query and 4 keys, one with 3 and 2.
inline AttentionRequest Packed() {
  return {.query = View({4, 4, 8}),
          .key = View({6, 2, 8}),
          .value = View({6, 2, 5}),
          .layout = Layout::kPacked,
          .query_lengths = {{1, 3}},
          .key_lengths = {{4, 2}}};
}

inline absl::Status Validate(const AttentionRequest& request, const AttentionLimits& limits = {}) {
  return ValidateAttention(request, limits).status();
}

struct Rule {
  std::string name;
  AttentionRequest (*base)();
  std::function<void(AttentionRequest&)> breaks;
  std::string message;
  std::function<void(AttentionRequest&)> keeps;
};

inline std::string RuleName(const testing::TestParamInfo<Rule>& tested) { return tested.param.name; }

class RuleTest : public testing::TestWithParam<Rule> {
 protected:
  void CheckRule() const {
    AttentionRequest broken = GetParam().base();
    GetParam().breaks(broken);
    const absl::Status refused = Validate(broken);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr(GetParam().message));

    AttentionRequest legal = GetParam().base();
    GetParam().keeps(legal);
    const absl::Status accepted = Validate(legal);
    EXPECT_TRUE(accepted.ok()) << accepted;
  }
};

}  // namespace triad
