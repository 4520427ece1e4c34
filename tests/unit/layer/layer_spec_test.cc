// Each rule of a spec: a change that breaks it and the message, and the nearest change that does not.
#include "core/layer/layer_spec.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace triad {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Grouped heads, values narrower than keys.
LayerSpec Self() {
  return {.model_dim = 12,
          .output_dim = 10,
          .heads = 4,
          .kv_heads = 2,
          .qk_head_dim = 8,
          .v_head_dim = 5,
          .alignment = Alignment::kTopLeft,
          .query = {.weight = "q.w", .bias = "q.b"},
          .key = {.weight = "k.w"},
          .value = {.weight = "v.w", .bias = "v.b"},
          .output = {.weight = "o.w"}};
}

LayerSpec Cross() {
  LayerSpec spec = Self();
  spec.context_dim = 20;
  spec.alignment = Alignment::kUnspecified;
  return spec;
}

LayerSpec Fused() {
  LayerSpec spec = Self();
  spec.query = spec.key = spec.value = {};
  spec.fused = {.weight = "qkv.w", .bias = "qkv.b"};
  return spec;
}

LayerSpec Rotary() {
  LayerSpec spec = Self();
  spec.rotary = {.dim = 8};
  return spec;
}

using Change = std::function<void(LayerSpec&)>;

struct SpecRule {
  LayerSpec (*base)();
  Change breaks;
  const char* message;
  Change keeps;
};

void CheckRules(const std::vector<SpecRule>& rules) {
  for (const SpecRule& rule : rules) {
    LayerSpec broken = rule.base();
    rule.breaks(broken);
    const absl::Status refused = ValidateLayerSpec(broken);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << rule.message;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(rule.message));

    LayerSpec legal = rule.base();
    rule.keeps(legal);
    EXPECT_EQ(ValidateLayerSpec(legal), absl::OkStatus()) << "the nearest legal spec to: " << rule.message;
  }
}

TEST(LayerSpecTest, AcceptsSelfCrossFusedAndRotaryLayers) {
  for (LayerSpec (*make)() : {Self, Cross, Fused, Rotary}) EXPECT_EQ(ValidateLayerSpec(make()), absl::OkStatus());
}

TEST(LayerSpecTest, SizesAreAtLeastOneAndBounded) {
  CheckRules({
      {Self, [](LayerSpec& s) { s.model_dim = 0; }, "model_dim must be >= 1; was 0",
       [](LayerSpec& s) { s.model_dim = 1; }},
      {Self, [](LayerSpec& s) { s.model_dim = 65537; }, "model_dim must be at most 65536; was 65537",
       [](LayerSpec& s) { s.model_dim = 65536; }},
      {Self, [](LayerSpec& s) { s.output_dim = -3; }, "output_dim must be >= 1; was -3",
       [](LayerSpec& s) { s.output_dim = 1; }},
      {Cross, [](LayerSpec& s) { s.context_dim = -1; },
       "context_dim, unless 0 for self-attention, must be >= 1; was -1", [](LayerSpec& s) { s.context_dim = 1; }},
      {Cross, [](LayerSpec& s) { s.context_dim = 65537; }, "must be at most 65536; was 65537",
       [](LayerSpec& s) { s.context_dim = 65536; }},
      {Self, [](LayerSpec& s) { s.heads = 0; }, "heads must be >= 1; was 0", [](LayerSpec& s) { s.heads = 2; }},
      {Self, [](LayerSpec& s) { s.kv_heads = 0; }, "kv_heads must be >= 1; was 0",
       [](LayerSpec& s) { s.kv_heads = 1; }},
      {Self, [](LayerSpec& s) { s.kv_heads = 3; }, "kv_heads must divide heads (4); was 3",
       [](LayerSpec& s) { s.kv_heads = 4; }},
      {Self, [](LayerSpec& s) { s.kv_heads = 8; }, "kv_heads must divide heads (4); was 8",
       [](LayerSpec& s) { s.kv_heads = 1; }},
      {Self, [](LayerSpec& s) { s.qk_head_dim = 0; }, "qk_head_dim must be >= 1; was 0",
       [](LayerSpec& s) { s.qk_head_dim = 1; }},
      {Self, [](LayerSpec& s) { s.v_head_dim = 0; }, "v_head_dim must be >= 1; was 0",
       [](LayerSpec& s) { s.v_head_dim = 1; }},
      {Self, [](LayerSpec& s) { s.qk_head_dim = 16385; }, "heads * qk_head_dim must be at most 65536; was 4 * 16385",
       [](LayerSpec& s) { s.qk_head_dim = 16384; }},
      {Self, [](LayerSpec& s) { s.v_head_dim = 16385; }, "heads * v_head_dim must be at most 65536; was 4 * 16385",
       [](LayerSpec& s) { s.v_head_dim = 16384; }},
  });
}

TEST(LayerSpecTest, NoSizeOverflowsBeforeItIsRefused) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  for (int64_t LayerSpec::*size :
       {&LayerSpec::model_dim, &LayerSpec::context_dim, &LayerSpec::output_dim, &LayerSpec::heads, &LayerSpec::kv_heads,
        &LayerSpec::qk_head_dim, &LayerSpec::v_head_dim}) {
    for (int64_t value : {kHuge, -kHuge - 1}) {
      LayerSpec spec = Self();
      spec.*size = value;
      EXPECT_EQ(ValidateLayerSpec(spec).code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

TEST(LayerSpecTest, ScoreRulesAreThoseOfARequest) {
  CheckRules({
      {Self, [](LayerSpec& s) { s.compute = DType::kF16; }, "compute must be FLOAT32 or BFLOAT16; was FLOAT16",
       [](LayerSpec& s) { s.compute = DType::kBf16; }},
      {Self, [](LayerSpec& s) { s.scale = kNan; }, "scale must be finite; was nan", [](LayerSpec& s) { s.scale = -1; }},
      {Self, [](LayerSpec& s) { s.logit_softcap = -1; }, "logit_softcap must be finite and >= 0 (0 is off); was -1",
       [](LayerSpec& s) { s.logit_softcap = 30; }},
      {Self, [](LayerSpec& s) { s.logit_softcap = kInfinity; }, "logit_softcap must be finite",
       [](LayerSpec& s) { s.logit_softcap = 0; }},
      {Self, [](LayerSpec& s) { s.window = {.left = -1}; }, "window.left must be >= 0; was -1",
       [](LayerSpec& s) { s.window = {.left = 0}; }},
      {Self, [](LayerSpec& s) { s.window = {.right = -1}; }, "window.right must be >= 0; was -1",
       [](LayerSpec& s) { s.window = Window{}; }},
      {Self,
       [](LayerSpec& s) {
         s.alibi_slopes = {1, 2};
       },
       "alibi_slopes must have one entry for each of 4 heads, or none; was 2 entries",
       [](LayerSpec& s) {
         s.alibi_slopes = {1, 2, 3, -4};
       }},
      {Self,
       [](LayerSpec& s) {
         s.alibi_slopes = {1, 2, kInfinity, 4};
       },
       "alibi_slopes[2] must be finite; was inf",
       [](LayerSpec& s) {
         s.alibi_slopes = {0, 0, 0, 0};
       }},
      {Self,
       [](LayerSpec& s) {
         s.alibi_slopes = {1, 2, 3, 4}, s.alibi = true;
       },
       "alibi_slopes must be empty when alibi is true; was 4 entries", [](LayerSpec& s) { s.alibi = true; }},
      {Self, [](LayerSpec& s) { s.sinks = {1}; },
       "sinks must have one entry for each of 4 heads, or none; was 1 entries",
       [](LayerSpec& s) {
         s.sinks = {1, 2, 3, -kInfinity};
       }},
      {Self,
       [](LayerSpec& s) {
         s.sinks = {1, 2, 3, kInfinity};
       },
       "sinks[3] must be finite, or -inf for none; was inf", [](LayerSpec& s) { s.sinks = {}; }},
  });
}

TEST(LayerSpecTest, WhatCountsPositionsNeedsAnAlignment) {
  for (const Change& counts :
       std::vector<Change>{[](LayerSpec& s) { s.causal = true; }, [](LayerSpec& s) { s.window = Window{}; },
                           [](LayerSpec& s) { s.alibi = true; },
                           [](LayerSpec& s) {
                             s.alibi_slopes = {1, 1, 1, 1};
                           }}) {
    CheckRules(
        {{Cross, counts, "alignment must be TOP_LEFT or BOTTOM_RIGHT with causal, window or ALiBi; was unspecified",
          [&counts](LayerSpec& s) { counts(s), s.alignment = Alignment::kBottomRight; }}});
  }
}

TEST(LayerSpecTest, RotaryAnglesAreFiniteAndPairsLieInTheHead) {
  CheckRules({
      {Cross, [](LayerSpec& s) { s.rotary.dim = 8; }, "rotary must be unset with context_dim (20); was of dim 8",
       [](LayerSpec&) {}},
      {Rotary, [](LayerSpec& s) { s.rotary.dim = 7; }, "rotary.dim must be even, from 2 to qk_head_dim (8); was 7",
       [](LayerSpec& s) { s.rotary.dim = 2; }},
      {Rotary, [](LayerSpec& s) { s.rotary.dim = 10; }, "from 2 to qk_head_dim (8); was 10",
       [](LayerSpec& s) { s.rotary.dim = 8; }},
      {Rotary, [](LayerSpec& s) { s.rotary.dim = -2; }, "from 2 to qk_head_dim (8); was -2",
       [](LayerSpec& s) { s.rotary.dim = 0; }},
      {Rotary, [](LayerSpec& s) { s.rotary.theta = 0; }, "rotary.theta must be finite and at least 2^-64; was 0",
       [](LayerSpec& s) { s.rotary.theta = 5e5; }},
      {Rotary, [](LayerSpec& s) { s.rotary.theta = kNan; }, "rotary.theta must be finite",
       [](LayerSpec& s) { s.rotary.theta = 0x1p-64; }},
      {Rotary, [](LayerSpec& s) { s.rotary.theta = kInfinity; }, "rotary.theta must be finite",
       [](LayerSpec& s) { s.rotary.theta = 1; }},
      {Rotary,
       [](LayerSpec& s) {
         s.rotary.inverse_frequencies = {1, 2, 3};
       },
       "rotary.inverse_frequencies must have one entry for each of rotary.dim / 2 (4) pairs, or none; was 3 entries",
       [](LayerSpec& s) {
         s.rotary.inverse_frequencies = {1, .5, 0, -1};
       }},
      {Rotary,
       [](LayerSpec& s) {
         s.rotary.inverse_frequencies = {1, kNan, 0, 1};
       },
       "rotary.inverse_frequencies[1] must lie between -2^64 and 2^64; was nan",
       [](LayerSpec& s) {
         s.rotary.inverse_frequencies = {0x1p64, -0x1p64, 0, 0};
       }},
      {Rotary, [](LayerSpec& s) { s.rotary.attention_factor = 0; },
       "rotary.attention_factor must be > 0 and finite in FLOAT32; was 0",
       [](LayerSpec& s) { s.rotary.attention_factor = 1.3; }},
      {Rotary, [](LayerSpec& s) { s.rotary.attention_factor = 1e39; }, "rotary.attention_factor must be > 0 and finite",
       [](LayerSpec& s) { s.rotary.attention_factor = 1e38; }},
  });
}

TEST(LayerSpecTest, EveryWeightHasAName) {
  CheckRules({
      {Self, [](LayerSpec& s) { s.query.weight.clear(); },
       "query.weight must be named, unless fused.weight is; was empty", [](LayerSpec& s) { s.query.bias.clear(); }},
      {Self, [](LayerSpec& s) { s.key.weight.clear(); }, "key.weight must be named",
       [](LayerSpec& s) { s.key.bias = "k.b"; }},
      {Self, [](LayerSpec& s) { s.value.weight.clear(); }, "value.weight must be named",
       [](LayerSpec& s) { s.value.bias.clear(); }},
      {Self, [](LayerSpec& s) { s.output.weight.clear(); }, "output.weight must be named; was empty",
       [](LayerSpec& s) { s.output.bias = "o.b"; }},
      {Fused, [](LayerSpec& s) { s.fused.weight.clear(); }, "fused.weight must be named; was empty, with a fused.bias",
       [](LayerSpec& s) { s.fused.bias.clear(); }},
      {Self, [](LayerSpec& s) { s.key.weight = std::string(513, 'k'); },
       "key.weight must have at most 512 bytes; was 513 bytes",
       [](LayerSpec& s) { s.key.weight = std::string(512, 'k'); }},
  });
}

TEST(LayerSpecTest, AFusedWeightExcludesTheThreeAndAContext) {
  CheckRules({
      {Fused, [](LayerSpec& s) { s.query.weight = "q.w"; }, "query must be unset when fused is given; was 'q.w'",
       [](LayerSpec&) {}},
      {Fused, [](LayerSpec& s) { s.value.bias = "v.b"; }, "value must be unset when fused is given; was 'v.b'",
       [](LayerSpec&) {}},
      {Fused, [](LayerSpec& s) { s.context_dim = 12; }, "fused must be unset with context_dim (12); was 'qkv.w'",
       [](LayerSpec&) {}},
  });
}

TEST(LayerSpecTest, ATensorIsNamedOnce) {
  CheckRules({
      {Self, [](LayerSpec& s) { s.key.weight = "q.w"; },
       "key.weight must name a tensor of its own; was 'q.w', as query.weight",
       [](LayerSpec& s) { s.key.weight = "Q.w"; }},
      {Self, [](LayerSpec& s) { s.output.bias = "v.b"; },
       "output.bias must name a tensor of its own; was 'v.b', as value.bias",
       [](LayerSpec& s) { s.output.bias = "o.b"; }},
  });
}

TEST(LayerSpecTest, NamesAreEscapedInMessages) {
  LayerSpec spec = Self();
  spec.query.weight = spec.key.weight = "a\n\xff";
  EXPECT_THAT(std::string(ValidateLayerSpec(spec).message()), HasSubstr("'a\\n\\xff'"));
}

}  // namespace
}  // namespace triad
