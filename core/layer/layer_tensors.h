// A layer's weights, normalised: whatever file or generator they came from, they lie here in one way.
#pragma once

#include "absl/status/statusor.h"
#include "core/layer/layer_spec.h"
#include "core/tensor/safetensors_file.h"
#include "core/tensor/tensor.h"

namespace triad {

// y = x weight^T + bias.
struct ProjectionTensors {
  Tensor weight;  // FLOAT32 [outputs, inputs]
  Tensor bias;    // FLOAT32 [outputs], or [0]: none
};

struct LayerTensors {
  ProjectionTensors query;   // [heads * qk_head_dim, model_dim]
  ProjectionTensors key;     // [kv_heads * qk_head_dim, context_dim or model_dim]
  ProjectionTensors value;   // [kv_heads * v_head_dim, likewise]
  ProjectionTensors output;  // [output_dim, heads * v_head_dim]
};

// Takes what `spec` (validated) names out of `file`, widened to f32, transposed and split as needed. INVALID_ARGUMENT,
// naming the tensor and the reason: missing, wrong shape, not a float type, not finite (in the compute type of the
// layer), or present without being named by the spec (a layer that ignored, say, a per-head q norm would answer
// wrongly). RESOURCE_EXHAUSTED: no memory. Takes as long as reading `file` does.
absl::StatusOr<LayerTensors> ReadLayerTensors(const LayerSpec& spec, const SafetensorsView& file);

// Near-normal deviates of variance 1 / inputs, biases zero where the spec names one, from `seed`: a layer for
// demonstrations and tests. The same bytes on every platform. INVALID_ARGUMENT, RESOURCE_EXHAUSTED.
absl::StatusOr<LayerTensors> MakeSeededTensors(const LayerSpec& spec, uint64_t seed);

// 512 wide, 8 heads of 64, not causal: the base model of Vaswani et al. 2017 (arXiv:1706.03762).
LayerSpec DemoLayerSpec();

}  // namespace triad
