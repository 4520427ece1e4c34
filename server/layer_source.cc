#include "server/layer_source.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/attention/attention_request.h"
#include "core/base/scratch.h"
#include "core/layer/forward_batch.h"
#include "core/layer/forward_problem.h"
#include "core/layer/layer_folder.h"
#include "core/layer/layer_tensors.h"
#include "core/tensor/tensor.h"

namespace triad {
namespace {

// Enough for a matrix product of more than one row.
constexpr int64_t kWarmTokens = 4;

// Answers one small request of zeros with `layer`, on this thread.
absl::Status WarmUpLayer(const HostedLayer& layer, const LayerHost& host) {
  const LayerSpec& spec = layer.spec();
  absl::StatusOr<Tensor> input = Tensor::Zeros(DType::kF32, {1, kWarmTokens, spec.model_dim});
  if (!input.ok()) return input.status();
  absl::StatusOr<Tensor> context = Tensor::Zeros(DType::kF32, {1, kWarmTokens, spec.context_dim});
  if (!context.ok()) return context.status();
  ForwardRequest request{.input = input->view()};
  if (spec.is_cross()) request.context = context->view();
  // The limits' defaults: flags may bound clients below this request.
  const absl::StatusOr<ForwardProblem> problem = ValidateForward(request, spec, AttentionLimits());
  if (!problem.ok()) {
    return absl::FailedPreconditionError(absl::StrCat("the layer cannot be served here: ", problem.status().message()));
  }
  absl::StatusOr<Tensor> output = Tensor::Zeros(problem->dtype, problem->output_shape);
  if (!output.ok()) return output.status();
  Scratch scratch;
  return RunForward(layer, host.kernel, {.problem = &*problem, .reply = {.output = output->data()}}, scratch);
}

absl::StatusOr<std::shared_ptr<const HostedLayer>> WarmedUp(absl::StatusOr<std::unique_ptr<const HostedLayer>> layer,
                                                            const LayerHost& host) {
  if (!layer.ok()) return layer.status();
  if (absl::Status status = WarmUpLayer(**layer, host); !status.ok()) return status;
  return std::shared_ptr<const HostedLayer>(*std::move(layer));
}

class DirectorySource final : public LayerSource {
 public:
  DirectorySource(std::string layer_dir, const LayerHost& host) : layer_dir_(std::move(layer_dir)), host_(host) {}

  absl::StatusOr<LayerFolder> Find(const LayerChoice& choice) override {
    if (layer_dir_.empty()) {
      return absl::FailedPreconditionError("there is no layer directory; start the server with --layer_dir");
    }
    return FindLayerFolder(layer_dir_, choice.name, choice.version);
  }

  absl::StatusOr<std::shared_ptr<const HostedLayer>> Read(const LayerFolder& folder) override {
    auto layer = WarmedUp(LoadLayerFolder(folder.path, host_.isa), host_);
    if (layer.ok()) return layer;
    // The message goes to clients, who need not know where the directory lies.
    const absl::Status& error = layer.status();
    const std::string name = absl::StrCat(folder.name, "/", folder.version);
    return absl::Status(error.code(), absl::StrReplaceAll(error.message(), {{folder.path, name}}));
  }

 private:
  const std::string layer_dir_;
  const LayerHost host_;
};

}  // namespace

std::unique_ptr<LayerSource> MakeDirectorySource(std::string layer_dir, const LayerHost& host) {
  return std::make_unique<DirectorySource>(std::move(layer_dir), host);
}

absl::StatusOr<std::shared_ptr<const HostedLayer>> MakeDemoLayer(const LayerHost& host) {
  const LayerSpec spec = DemoLayerSpec();
  const absl::StatusOr<LayerTensors> tensors = MakeSeededTensors(spec, kDemoLayerSeed);
  if (!tensors.ok()) return tensors.status();
  return WarmedUp(HostedLayer::Create(spec, *tensors, host.isa), host);
}

}  // namespace triad
