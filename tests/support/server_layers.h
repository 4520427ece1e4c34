// Small layers for tests: in memory, as folders, and requests for them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/layer/hosted_layer.h"
#include "core/layer/layer_spec.h"
#include "core/layer/layer_tensors.h"
#include "triad/v1/attention.pb.h"

namespace triad {

inline constexpr int64_t kSmallDim = 16;

// Self-attention, kSmallDim wide, 2 heads of 8, with biases.
LayerSpec SmallLayerSpec();
// As a layer.textproto has it.
std::string SmallLayerText();
// Its weights, from `seed`.
LayerTensors SmallLayerTensors(uint64_t seed);
std::shared_ptr<const HostedLayer> MakeSmallLayer(uint64_t seed);

// Writes the same layer to <layer_dir>/<name>/<version>/, over what is there.
void WriteSmallLayer(const std::filesystem::path& layer_dir, const std::string& name, int64_t version, uint64_t seed);
// Replaces one file of it.
void WriteLayerFile(const std::filesystem::path& layer_dir, const std::string& name_and_version,
                    const std::string& file, const std::string& bytes);

struct ForwardShape {
  int64_t batch = 1;
  int64_t tokens = 3;
  int64_t dim = kSmallDim;
};

// Normally distributed hidden states from `seed`, FLOAT32 [batch, tokens, dim].
v1::ForwardRequest MakeForwardRequest(const std::string& layer, uint64_t seed, const ForwardShape& shape = {});

}  // namespace triad
