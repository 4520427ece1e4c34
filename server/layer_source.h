// Where layers come from, as the loader sees it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/attention/attention_kernel.h"
#include "core/base/cpu.h"
#include "core/layer/hosted_layer.h"
#include "server/layer_directory.h"
#include "server/layer_name.h"

namespace triad {

class LayerSource {
 public:
  virtual ~LayerSource() = default;
  // Which folder is meant. Errors as FindLayerFolder. Blocks for the disk.
  virtual absl::StatusOr<LayerFolder> Find(const LayerChoice& choice) = 0;
  // Reads, packs and warms up what lies there: the first request finds it ready. Errors as LoadLayerFolder, and
  // FAILED_PRECONDITION when this server could not serve it; messages name files by <name>/<version>/. Blocks for as
  // long as that takes.
  virtual absl::StatusOr<std::shared_ptr<const HostedLayer>> Read(const LayerFolder& folder) = 0;
};

// What serves the layers that are read: each is tried with it.
struct LayerHost {
  InstructionSet isa = InstructionSet::kGeneric;
  const AttentionKernel& kernel;
};

// The source that reads the layer directory; `layer_dir` empty: there is none, and Find says so (FAILED_PRECONDITION).
// host.kernel outlives it. Thread-safe.
std::unique_ptr<LayerSource> MakeDirectorySource(std::string layer_dir, const LayerHost& host);

// The layer that is built in: DemoLayerSpec with weights from kDemoLayerSeed, warmed up.
inline constexpr char kDemoLayerName[] = "demo";
inline constexpr int64_t kDemoLayerVersion = 1;
inline constexpr uint64_t kDemoLayerSeed = 1;
absl::StatusOr<std::shared_ptr<const HostedLayer>> MakeDemoLayer(const LayerHost& host);

}  // namespace triad
