// A layer ready to serve: its spec, its weights packed for this machine, its rotary frequencies. Immutable.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/base/cpu.h"
#include "core/layer/layer_spec.h"
#include "core/layer/layer_tensors.h"

namespace triad {

class Projection;   // projection.h
class RotaryTable;  // rotary.h

class HostedLayer {
 public:
  // Packs `tensors`, whose shapes are those of `spec` (validated). Blocks for as long as that takes. Where `isa` is
  // below the machine's, the process has made its FastAttention before: that caps oneDNN, which its first use would
  // fix. INTERNAL: oneDNN failed; RESOURCE_EXHAUSTED: no memory.
  static absl::StatusOr<std::unique_ptr<const HostedLayer>> Create(LayerSpec spec, const LayerTensors& tensors,
                                                                   InstructionSet isa);
  ~HostedLayer();

  const LayerSpec& spec() const { return spec_; }
  int64_t weights_bytes() const { return weights_bytes_; }

  // For ForwardBatch. The fused product of a self-attention layer is query, key and value side by side in one row.
  const Projection& query_projection() const { return *query_; }           // self-attention: of all three
  const Projection* context_projection() const { return context_.get(); }  // cross-attention: key and value; else null
  const Projection& output_projection() const { return *output_; }
  const RotaryTable* rotary() const { return rotary_.get(); }  // null: none

 private:
  HostedLayer() = default;

  LayerSpec spec_;
  int64_t weights_bytes_ = 0;
  std::unique_ptr<const Projection> query_;
  std::unique_ptr<const Projection> context_;
  std::unique_ptr<const Projection> output_;
  std::unique_ptr<const RotaryTable> rotary_;
};

}  // namespace triad
