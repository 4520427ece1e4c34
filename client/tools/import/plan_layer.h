// Which tensors of a checkpoint make one of its attention layers, and what its layer.textproto says.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/tools/import/checkpoint.h"
#include "client/tools/import/layer_text.h"
#include "core/tensor/tensor.h"

namespace triad::tools {

struct LayerPlan {
  int64_t index = 0;  // of the layer in its model
  LayerText text;
  std::map<std::string, TensorView> tensors;  // what `text` names, and nothing else; borrowed from the checkpoint
};

struct PlanOptions {
  std::optional<int64_t> layer;  // unset: all
  bool bf16_compute = false;
};

// Plans every layer asked for, or none. Looks at names and shapes alone, never at weights. INVALID_ARGUMENT, NOT_FOUND
// or UNIMPLEMENTED names the field or tensor that is missing, of a wrong shape or type, or not understood.
absl::StatusOr<std::vector<LayerPlan>> PlanLayers(const Checkpoint& checkpoint, const PlanOptions& options);

}  // namespace triad::tools
