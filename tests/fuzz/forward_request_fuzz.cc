// Whatever the bytes of a ForwardRequest, they are no message, or are refused in words, or give a problem that each of
// a few small layers can compute or refuses in words.
#include <google/protobuf/stubs/logging.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/fast_attention.h"
#include "core/base/check.h"
#include "core/layer/forward_batch.h"
#include "core/layer/forward_problem.h"
#include "core/layer/layer_spec_text.h"
#include "core/layer/layer_tensors.h"
#include "server/decode_forward.h"
#include "tests/fuzz/request_answer.h"

namespace triad {
namespace {

// Self-attention with everything a layer may bring, and cross-attention. Narrow, so that a token is a few bytes.
const char* const kLayers[] = {
    R"(model_dim: 4 heads: 2 kv_heads: 1 causal: true alignment: BOTTOM_RIGHT rotary { dim: 2 theta: 10000 }
       query { weight: "q" } key { weight: "k" } value { weight: "v" } output { weight: "o" })",
    R"(model_dim: 2 heads: 1 context_dim: 3
       query { weight: "q" } key { weight: "k" } value { weight: "v" } output { weight: "o" })",
};

std::vector<std::unique_ptr<const HostedLayer>> MakeLayers() {
  std::vector<std::unique_ptr<const HostedLayer>> layers;
  for (const char* text : kLayers) {
    const absl::StatusOr<LayerSpec> spec = ParseLayerSpec(text);
    TRIAD_CHECK(spec.ok(), "the layers' texts are right");
    const absl::StatusOr<LayerTensors> tensors = MakeSeededTensors(*spec, /*seed=*/1);
    TRIAD_CHECK(tensors.ok(), "a small layer has weights");
    absl::StatusOr<std::unique_ptr<const HostedLayer>> layer =
        HostedLayer::Create(*spec, *tensors, DetectInstructionSet());
    TRIAD_CHECK(layer.ok(), "a small layer can be packed");
    layers.push_back(*std::move(layer));
  }
  return layers;
}

void Compute(const HostedLayer& layer, const ForwardProblem& problem) {
  static const auto fast = FastAttention::Create(DetectInstructionSet());
  TRIAD_CHECK(fast.ok(), "this machine has a fast kernel");
  RequestAnswer answer(problem.attention, problem.output_shape);
  const AttentionOutputs outputs = answer.outputs();
  Scratch scratch;
  const ForwardReply reply{.output = outputs.output, .lse = outputs.lse, .weights = outputs.weights};
  const absl::Status status = RunForward(layer, **fast, {.problem = &problem, .reply = reply}, scratch);
  TRIAD_CHECK(status.ok(), "a valid problem can be computed");
}

void Check(const v1::ForwardRequest& message) {
  static const auto layers = MakeLayers();
  const absl::StatusOr<DecodedForward> decoded = DecodeForward(message, kFuzzLimits.max_batch);
  if (!decoded.ok()) return CheckRefusal(decoded.status());
  for (const auto& layer : layers) {
    const absl::StatusOr<ForwardProblem> problem = ValidateForward(decoded->request, layer->spec(), kFuzzLimits);
    if (!problem.ok()) {
      CheckRefusal(problem.status());
    } else if (IsSmall(problem->attention, FlopNeeded(*problem, layer->spec()))) {
      Compute(*layer, *problem);
    }
  }
}

}  // namespace
}  // namespace triad

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  google::protobuf::SetLogHandler(nullptr);  // a line for each name that is not UTF-8
  triad::v1::ForwardRequest message;
  if (message.ParseFromArray(data, static_cast<int>(size))) triad::Check(message);
  return 0;
}
