// A layer on disk: <folder>/layer.textproto and <folder>/weights.safetensors.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/cpu.h"
#include "core/layer/hosted_layer.h"

namespace triad {

// Reads and packs the layer in `folder`. NOT_FOUND: no such folder or file. FAILED_PRECONDITION: they do not hold a
// layer; the message names file, tensor or field, and the reason. RESOURCE_EXHAUSTED, INTERNAL as HostedLayer::Create.
// Blocks for the disk and for packing.
absl::StatusOr<std::unique_ptr<const HostedLayer>> LoadLayerFolder(const std::string& folder, InstructionSet isa);

}  // namespace triad
