// The file layer.textproto. Its source is the one file of core that knows protobuf, in a target of its own.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/layer/layer_spec.h"

namespace triad {

// Parses `text` as triad.v1.LayerSpec, fills in the defaults and validates. INVALID_ARGUMENT names line or field, the
// rule and the value. Text of more than 1 MiB is refused.
absl::StatusOr<LayerSpec> ParseLayerSpec(absl::string_view text);

}  // namespace triad
