// A whole layer in plain loops, from its spec and tensors: what ForwardBatch is judged by.
#pragma once

#include <cstdint>
#include <vector>

#include "core/layer/layer_spec.h"
#include "core/layer/layer_tensors.h"

namespace triad {

// One sequence: hidden states widened to f32, no padding.
struct LayerSequence {
  std::vector<float> input;    // [tokens, model_dim]
  std::vector<float> context;  // [context tokens, context_dim]; not for self-attention
  int64_t position_offset = 0;
};

struct LayerAnswer {
  std::vector<double> output;   // [tokens, output_dim]
  std::vector<double> lse;      // [heads, tokens]
  std::vector<double> weights;  // [heads, tokens, keys]
};

// kExact: in f64, of inputs and weights rounded to the layer's compute type.
// kNaive: what one would write for that type: products accumulated in f32; q, k, v, the softmax weights before the value
// product, and the attention's output rounded to it.
enum class LayerArithmetic { kExact, kNaive };

LayerAnswer ReferenceForward(const LayerSpec& spec, const LayerTensors& tensors, const LayerSequence& sequence,
                             LayerArithmetic arithmetic = LayerArithmetic::kExact);

}  // namespace triad
