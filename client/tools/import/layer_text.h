// The file layer.textproto, as text: this tool writes it without protobuf.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace triad::tools {

// Tensors of a projection; empty: none.
struct ProjectionText {
  std::string weight;
  std::string bias;
};

struct RotaryText {
  int64_t dim = 0;  // 0: no rotary embedding
  double theta = 10000;
  std::vector<double> inverse_frequencies;  // instead of theta, unless empty
  double attention_factor = 1;
};

// The fields of triad.v1.LayerSpec (proto/triad/v1/layer_spec.proto) that an import may set.
struct LayerText {
  int64_t model_dim = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;  // of queries, keys and values
  bool bf16_compute = false;
  std::optional<float> scale;
  bool causal = false;
  std::optional<int64_t> window_left;
  RotaryText rotary;
  bool in_out = false;  // weights lie [inputs, outputs]
  ProjectionText query, key, value;
  ProjectionText fused;  // instead of the three
  ProjectionText output;

  bool is_fused() const { return !fused.weight.empty(); }
};

// `layer` in protobuf's text format. Every number is read back as it is here.
std::string FormatLayer(const LayerText& layer);

}  // namespace triad::tools
