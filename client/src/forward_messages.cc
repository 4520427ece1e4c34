#include "client/src/forward_messages.h"

#include <utility>

#include "absl/status/status.h"
#include "client/src/tensor_messages.h"

namespace triad::client {
namespace {

void Fill(const ForwardRequest& request, Payload payload, v1::ForwardRequest& message) {
  message.set_layer(request.layer);
  if (request.version) message.set_version(*request.version);
  EncodeTensor(request.input, payload, *message.mutable_input());
  message.set_layout(static_cast<v1::Layout>(request.layout));
  if (request.lengths) EncodeLengths(*request.lengths, *message.mutable_lengths());
  if (request.context) EncodeTensor(*request.context, payload, *message.mutable_context());
  if (request.context_lengths) EncodeLengths(*request.context_lengths, *message.mutable_context_lengths());
  if (request.keep) EncodeTensor(*request.keep, payload, *message.mutable_keep());
  if (request.bias) EncodeTensor(*request.bias, payload, *message.mutable_bias());
  if (request.position_offsets) EncodeLengths(*request.position_offsets, *message.mutable_position_offsets());
  message.set_return_lse(request.return_lse);
  message.set_return_weights(request.return_weights);
  message.set_priority(static_cast<v1::Priority>(request.priority));
}

}  // namespace

void Encode(const ForwardRequest& request, v1::ForwardRequest& message) { Fill(request, Payload::kCopied, message); }

int64_t EncodedBytes(const ForwardRequest& request) {
  v1::ForwardRequest message;
  Fill(request, Payload::kLeftOut, message);
  int64_t bytes = static_cast<int64_t>(message.ByteSizeLong()) + PayloadGrowth(message.input(), request.input);
  if (request.context) bytes += PayloadGrowth(message.context(), *request.context);
  if (request.keep) bytes += PayloadGrowth(message.keep(), *request.keep);
  if (request.bias) bytes += PayloadGrowth(message.bias(), *request.bias);
  return bytes;
}

absl::StatusOr<ForwardResponse> Decode(v1::ForwardResponse&& message) {
  ForwardResponse response;
  response.version = message.version();
  if (absl::Status status = DecodeOutputs(message, response); !status.ok()) return status;
  return response;
}

Layer Decode(const v1::Layer& message) {
  return {.name = message.name(),
          .version = message.version(),
          .model_dim = message.model_dim(),
          .context_dim = message.context_dim(),
          .output_dim = message.output_dim(),
          .heads = message.heads(),
          .kv_heads = message.kv_heads(),
          .qk_head_dim = message.qk_head_dim(),
          .v_head_dim = message.v_head_dim(),
          .causal = message.causal(),
          .rotary_dim = message.rotary_dim(),
          .requires_context = message.requires_context(),
          .weights_bytes = message.weights_bytes()};
}

std::vector<Layer> Decode(const v1::ListLayersResponse& message) {
  std::vector<Layer> layers;
  for (const v1::Layer& layer : message.layers()) layers.push_back(Decode(layer));
  return layers;
}

}  // namespace triad::client
