#include "tests/support/server_layers.h"

#include <fstream>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/cpu.h"
#include "core/tensor/safetensors_file.h"
#include "core/tensor/tensor.h"
#include "tests/support/layer_case.h"
#include "tests/support/server_requests.h"

namespace triad {

LayerSpec SmallLayerSpec() {
  LayerSpec spec;
  spec.model_dim = spec.output_dim = kSmallDim;
  spec.heads = spec.kv_heads = 2;
  spec.qk_head_dim = spec.v_head_dim = 8;
  spec.alignment = Alignment::kTopLeft;
  spec.query = {"q.weight", "q.bias"};
  spec.key = {"k.weight", "k.bias"};
  spec.value = {"v.weight", "v.bias"};
  spec.output = {"o.weight", "o.bias"};
  return spec;
}

std::string SmallLayerText() {
  return R"(model_dim: 16
heads: 2
query { weight: "q.weight" bias: "q.bias" }
key { weight: "k.weight" bias: "k.bias" }
value { weight: "v.weight" bias: "v.bias" }
output { weight: "o.weight" bias: "o.bias" }
)";
}

LayerTensors SmallLayerTensors(uint64_t seed) { return NormalTensors(SmallLayerSpec(), seed, /*has_biases=*/true); }

std::shared_ptr<const HostedLayer> MakeSmallLayer(uint64_t seed) {
  absl::StatusOr<std::unique_ptr<const HostedLayer>> layer =
      HostedLayer::Create(SmallLayerSpec(), SmallLayerTensors(seed), DetectInstructionSet());
  TRIAD_CHECK(layer.ok(), "a small layer can be packed");
  return *std::move(layer);
}

void WriteSmallLayer(const std::filesystem::path& layer_dir, const std::string& name, int64_t version, uint64_t seed) {
  const std::string folder = absl::StrCat(name, "/", version);
  std::filesystem::create_directories(layer_dir / folder);
  const LayerTensors tensors = SmallLayerTensors(seed);
  std::map<std::string, TensorView> named;
  for (const auto& [letter, projection] : {std::pair<std::string, const ProjectionTensors&>{"q", tensors.query},
                                           {"k", tensors.key},
                                           {"v", tensors.value},
                                           {"o", tensors.output}}) {
    named[letter + ".weight"] = projection.weight.view();
    named[letter + ".bias"] = projection.bias.view();
  }
  const absl::Status written = WriteSafetensors((layer_dir / folder / "weights.safetensors").string(), named);
  TRIAD_CHECK(written.ok(), "a weight file can be written");
  WriteLayerFile(layer_dir, folder, "layer.textproto", SmallLayerText());
}

void WriteLayerFile(const std::filesystem::path& layer_dir, const std::string& name_and_version,
                    const std::string& file, const std::string& bytes) {
  std::filesystem::create_directories(layer_dir / name_and_version);
  std::ofstream(layer_dir / name_and_version / file, std::ios::binary) << bytes;
}

v1::ForwardRequest MakeForwardRequest(const std::string& layer, uint64_t seed, const ForwardShape& shape) {
  v1::ForwardRequest request;
  request.set_layer(layer);
  *request.mutable_input() = NormalTensor({shape.batch, shape.tokens, shape.dim}, seed);
  return request;
}

}  // namespace triad
