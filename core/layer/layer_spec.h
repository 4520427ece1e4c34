// What a hosted layer is, without its weights: its sizes, what its scores do, and the names of its tensors.
// Mirrors triad.v1.LayerSpec without protobuf; the fields' meaning and defaults stand in
// proto/triad/v1/layer_spec.proto.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/attention/attention_request.h"
#include "core/tensor/dtype.h"

namespace triad {

// Which two dimensions of a head the rotary embedding turns together.
enum class RotaryPairs { kHalves, kNeighbours };

struct RotarySpec {
  int64_t dim = 0;  // the first dims of each head, even; 0: no rotary embedding
  RotaryPairs pairs = RotaryPairs::kHalves;
  double theta = 10000;                     // frequency of pair i is theta^(-2 i / dim)
  std::vector<double> inverse_frequencies;  // dim / 2 of them instead of theta, or empty
  double attention_factor = 1;              // multiplies sines and cosines
};

// How a weight tensor lies: rows of outputs, as PyTorch's Linear keeps it, or rows of inputs.
enum class WeightOrder { kOutIn, kInOut };

// Tensors in weights.safetensors. A fused weight stacks [query; key; value] along its outputs.
struct ProjectionNames {
  std::string weight;
  std::string bias;  // empty: none
};

struct LayerSpec {
  int64_t model_dim = 0;
  int64_t context_dim = 0;  // 0: self-attention, and a context is refused; else one is required
  int64_t output_dim = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t qk_head_dim = 0;
  int64_t v_head_dim = 0;
  DType compute = DType::kF32;  // kF32 or kBf16

  std::optional<float> scale;
  float logit_softcap = 0;
  bool causal = false;
  Alignment alignment = Alignment::kUnspecified;
  std::optional<Window> window;
  std::vector<float> alibi_slopes;
  bool alibi = false;
  std::vector<float> sinks;
  RotarySpec rotary;

  WeightOrder weight_order = WeightOrder::kOutIn;
  ProjectionNames query;
  ProjectionNames key;
  ProjectionNames value;
  ProjectionNames fused;  // instead of the three; only for self-attention
  ProjectionNames output;

  bool is_cross() const { return context_dim != 0; }
  bool is_fused() const { return !fused.weight.empty(); }
  int64_t query_width() const { return heads * qk_head_dim; }
  int64_t key_width() const { return kv_heads * qk_head_dim; }
  int64_t value_width() const { return kv_heads * v_head_dim; }
  int64_t mixed_width() const { return heads * v_head_dim; }  // the input of the output projection
  int64_t key_input_dim() const { return is_cross() ? context_dim : model_dim; }
};

// Largest width of a hidden state or of all heads together. Keeps every product of two sizes within int64_t, and a
// weight within 4 GiB of elements.
inline constexpr int64_t kMaxLayerWidth = 65536;

// Every rule that can be checked without weights; the defaults have been filled in before. INVALID_ARGUMENT names
// field, rule and value.
absl::Status ValidateLayerSpec(const LayerSpec& spec);

}  // namespace triad
