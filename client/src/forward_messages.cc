#include "client/src/forward_messages.h"

#include <utility>

#include "absl/status/status.h"
#include "client/src/tensor_messages.h"

namespace triad::client {

MessageParts Encode(const ForwardRequest& request) {
  v1::ForwardRequest message;
  message.set_layer(request.layer);
  if (request.version) message.set_version(*request.version);
  message.set_layout(static_cast<v1::Layout>(request.layout));
  if (request.lengths) EncodeLengths(*request.lengths, *message.mutable_lengths());
  if (request.context_lengths) EncodeLengths(*request.context_lengths, *message.mutable_context_lengths());
  if (request.position_offsets) EncodeLengths(*request.position_offsets, *message.mutable_position_offsets());
  message.set_return_lse(request.return_lse);
  message.set_return_weights(request.return_weights);
  message.set_priority(static_cast<v1::Priority>(request.priority));

  MessageParts parts(message);
  parts.AddTensor(v1::ForwardRequest::kInputFieldNumber, request.input);
  if (request.context) parts.AddTensor(v1::ForwardRequest::kContextFieldNumber, *request.context);
  if (request.keep) parts.AddTensor(v1::ForwardRequest::kKeepFieldNumber, *request.keep);
  if (request.bias) parts.AddTensor(v1::ForwardRequest::kBiasFieldNumber, *request.bias);
  return parts;
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
