// What an attention test is about, apart from how it lies in memory: options, and the numbers of each head and token.
//
//   AttentionContent content = RandomContent({.dtype = DType::kBf16, .q_len = 17, .kv_len = 65, .causal = true,
//                                             .alignment = Alignment::kBottomRight});
//   content.key.at(0, 0, 64, 0) = NAN;
//   Answer answer = RunContent(kernel, content);            // attention_case.h
//   EXPECT_TRUE(MatchesReference(content, answer));         // attention_compare.h
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/attention_request.h"

namespace triad {

// Four dimensions of floats, row-major.
struct Array4 {
  std::array<int64_t, 4> shape = {0, 0, 0, 0};
  std::vector<float> values;

  Array4() = default;
  Array4(std::array<int64_t, 4> dims, float fill);

  bool empty() const { return values.empty(); }
  float& at(int64_t a, int64_t b, int64_t c, int64_t d) { return values[Index(a, b, c, d)]; }
  float at(int64_t a, int64_t b, int64_t c, int64_t d) const { return values[Index(a, b, c, d)]; }
  // The innermost dimension, without a call for each of its elements: sanitized builds inline little.
  float* row(int64_t a, int64_t b, int64_t c) { return values.data() + Index(a, b, c, 0); }
  const float* row(int64_t a, int64_t b, int64_t c) const { return values.data() + Index(a, b, c, 0); }
  // As at, but any index does for a dimension of 1.
  float Shared(int64_t a, int64_t b, int64_t c, int64_t d) const;

 private:
  size_t Index(int64_t a, int64_t b, int64_t c, int64_t d) const {
    return static_cast<size_t>(((a * shape[1] + b) * shape[2] + c) * shape[3] + d);
  }
};

// Which dimensions of a mask are shared (of extent 1).
struct MaskSharing {
  bool batch = false;
  bool heads = false;
  bool queries = false;
};

// Every choice of a case; the fields are those of AttentionRequest unless they say otherwise.
struct AttentionOptions {
  uint64_t seed = 1;
  DType dtype = DType::kF32;
  Layout layout = Layout::kTokensHeads;
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t kv_heads = 1;
  int64_t q_len = 1;
  int64_t kv_len = 1;
  int64_t qk_head_dim = 8;
  int64_t v_head_dim = 8;

  std::optional<float> scale;
  float logit_softcap = 0;
  bool causal = false;
  Alignment alignment = Alignment::kUnspecified;
  std::optional<Window> window;
  bool alibi = false;
  std::vector<float> alibi_slopes;
  std::vector<float> sinks;
  std::optional<std::vector<int64_t>> query_lengths;  // PACKED without lengths: all full
  std::optional<std::vector<int64_t>> key_lengths;

  std::optional<MaskSharing> keep;  // nullopt: no keep
  std::optional<MaskSharing> bias;  // nullopt: no bias
  DType bias_dtype = DType::kF32;
  double keep_ratio = 0.7;         // share of keep that is true
  double hiding_bias_ratio = 0.1;  // share of bias that is -inf
  float query_gain = 1;            // queries are N(0, 1) times this

  bool return_lse = true;
  bool return_weights = true;
};

struct AttentionContent {
  AttentionOptions options;
  Array4 query;                // [batch, heads, q_len, qk_head_dim]
  Array4 key;                  // [batch, kv_heads, kv_len, qk_head_dim]
  Array4 value;                // [batch, kv_heads, kv_len, v_head_dim]
  std::optional<Array4> keep;  // [batch|1, heads|1, q_len|1, kv_len]; 0 hidden, 1..255 visible
  std::optional<Array4> bias;  // likewise

  int64_t query_length(int64_t b) const;
  int64_t key_length(int64_t b) const;
  // Aligned position of query i of sequence b.
  int64_t position(int64_t b, int64_t i) const;
};

// One line with every choice, the seed included.
std::string ToString(const AttentionOptions& options);

// The value nearest to `value` in `dtype`.
float Round(DType dtype, float value);

// N(0, 1) tensors and masks by the options' ratios, all exact in their types. The same seed gives the same content.
AttentionContent RandomContent(const AttentionOptions& options);

// A small problem with a random choice for everything; whichever layout, heads, masks, lengths and options come up.
AttentionOptions RandomOptions(uint64_t seed, DType dtype);

// Whether query i of head h sees key j, by the definition, without the core's help.
bool IsVisible(const AttentionContent& content, int64_t b, int64_t h, int64_t i, int64_t j);

// Puts NaN wherever nothing may be read: queries past their length, keys and values that no query of their heads sees,
// bias entries that lengths, causal, window or keep hide from all that share them.
void PoisonHidden(AttentionContent& content);

}  // namespace triad
