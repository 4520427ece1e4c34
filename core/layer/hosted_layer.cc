#include "core/layer/hosted_layer.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/layer/activation_layout.h"
#include "core/layer/projection.h"
#include "core/layer/rotary.h"

namespace triad {
namespace {

const float* Floats(const Tensor& tensor) { return reinterpret_cast<const float*>(tensor.data()); }

// Collects the outputs of several weights for one product.
class OutputRows {
 public:
  OutputRows(int64_t inputs, DType compute) { weights_ = {.inputs = inputs, .compute = compute}; }

  // Output `row` of `tensors`.
  void Add(const ProjectionTensors& tensors, int64_t row) {
    weights_.rows.push_back(Floats(tensors.weight) + row * weights_.inputs);
    const bool has_bias = tensors.bias.element_count() > 0;
    weights_.bias.push_back(has_bias ? Floats(tensors.bias)[row] : 0);
    has_bias_ |= has_bias;
  }

  void AddZeros(int64_t count) {
    weights_.rows.resize(weights_.rows.size() + static_cast<size_t>(count), nullptr);
    weights_.bias.resize(weights_.bias.size() + static_cast<size_t>(count), 0);
  }

  void AddAll(const ProjectionTensors& tensors, int64_t count) {
    for (int64_t row = 0; row < count; ++row) Add(tensors, row);
  }

  // Heads of queries or keys: rotary pairs side by side, widths as the layout has them.
  void AddHeads(const ProjectionTensors& tensors, int64_t heads, const LayerSpec& spec, const RotaryTable* rotary) {
    const int64_t head_dim = spec.qk_head_dim;
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t i = 0; i < head_dim; ++i) {
        Add(tensors, head * head_dim + (rotary == nullptr ? i : rotary->SourceDim(i)));
      }
      AddZeros(LayoutOf(spec).qk_head_stride - head_dim);
    }
  }

  absl::StatusOr<std::unique_ptr<const Projection>> Pack(InstructionSet isa) {
    if (!has_bias_) weights_.bias.clear();
    return Projection::Create(weights_, isa);
  }

 private:
  ProjectionWeights weights_;
  bool has_bias_ = false;
};

}  // namespace

HostedLayer::~HostedLayer() = default;

absl::StatusOr<std::unique_ptr<const HostedLayer>> HostedLayer::Create(LayerSpec spec, const LayerTensors& tensors,
                                                                       InstructionSet isa) {
  try {
    std::unique_ptr<HostedLayer> layer(new HostedLayer);
    if (spec.rotary.dim > 0) layer->rotary_ = std::make_unique<const RotaryTable>(spec.rotary);

    OutputRows query(spec.model_dim, spec.compute);
    query.AddHeads(tensors.query, spec.heads, spec, layer->rotary_.get());
    OutputRows context(spec.key_input_dim(), spec.compute);
    OutputRows& keys_and_values = spec.is_cross() ? context : query;
    keys_and_values.AddHeads(tensors.key, spec.kv_heads, spec, layer->rotary_.get());
    keys_and_values.AddAll(tensors.value, spec.value_width());
    OutputRows output(spec.mixed_width(), spec.compute);
    output.AddAll(tensors.output, spec.output_dim);

    struct Packing {
      OutputRows& rows;
      std::unique_ptr<const Projection>& projection;
      bool exists;
    };
    for (const Packing& packing : {Packing{query, layer->query_, true},
                                   {context, layer->context_, spec.is_cross()},
                                   {output, layer->output_, true}}) {
      if (!packing.exists) continue;
      absl::StatusOr<std::unique_ptr<const Projection>> projection = packing.rows.Pack(isa);
      if (!projection.ok()) return projection.status();
      layer->weights_bytes_ += (*projection)->weights_bytes();
      packing.projection = *std::move(projection);
    }
    layer->spec_ = std::move(spec);
    return std::unique_ptr<const HostedLayer>(std::move(layer));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory for the layer's weights");
  }
}

}  // namespace triad
