#include "client/src/attend_messages.h"

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/src/tensor_messages.h"

namespace triad::client {

MessageParts Encode(const AttendRequest& request) {
  v1::AttendRequest message;
  message.set_layout(static_cast<v1::Layout>(request.layout));

  if (request.scale) message.set_scale(*request.scale);
  message.set_logit_softcap(request.logit_softcap);
  message.set_causal(request.causal);
  message.set_alignment(static_cast<v1::Alignment>(request.alignment));
  if (request.window) {
    v1::Window& window = *message.mutable_window();
    if (request.window->left) window.set_left(*request.window->left);
    if (request.window->right) window.set_right(*request.window->right);
  }
  message.mutable_alibi_slopes()->Assign(request.alibi_slopes.begin(), request.alibi_slopes.end());
  message.set_alibi(request.alibi);
  message.mutable_sinks()->Assign(request.sinks.begin(), request.sinks.end());
  if (request.query_lengths) EncodeLengths(*request.query_lengths, *message.mutable_query_lengths());
  if (request.key_lengths) EncodeLengths(*request.key_lengths, *message.mutable_key_lengths());

  message.set_return_lse(request.return_lse);
  message.set_return_weights(request.return_weights);
  message.set_kernel(static_cast<v1::Kernel>(request.kernel));
  message.set_priority(static_cast<v1::Priority>(request.priority));

  MessageParts parts(message);
  parts.AddTensor(v1::AttendRequest::kQueryFieldNumber, request.query);
  parts.AddTensor(v1::AttendRequest::kKeyFieldNumber, request.key);
  parts.AddTensor(v1::AttendRequest::kValueFieldNumber, request.value);
  if (request.keep) parts.AddTensor(v1::AttendRequest::kKeepFieldNumber, *request.keep);
  if (request.bias) parts.AddTensor(v1::AttendRequest::kBiasFieldNumber, *request.bias);
  return parts;
}

absl::StatusOr<AttendResponse> Decode(v1::AttendResponse&& message) {
  AttendResponse response;
  if (absl::Status status = DecodeOutputs(message, response); !status.ok()) return status;
  return response;
}

ServerInfo Decode(const v1::ServerInfo& message) {
  const v1::ServerInfo::Limits& limits = message.limits();
  return {.version = message.version(),
          .instruction_set = message.instruction_set(),
          .kernel = message.kernel(),
          .onednn_version = message.onednn_version(),
          .threads = message.threads(),
          .limits = {.max_message_bytes = limits.max_message_bytes(),
                     .max_tokens_per_request = limits.max_tokens_per_request(),
                     .max_head_dim = limits.max_head_dim(),
                     .max_weights_bytes = limits.max_weights_bytes(),
                     .max_in_flight_bytes = limits.max_in_flight_bytes(),
                     .max_queue_time = absl::Nanoseconds(limits.max_queue_time_ns()),
                     .max_streams = limits.max_streams(),
                     .max_stream_items = limits.max_stream_items(),
                     .max_reference_work = limits.max_reference_work(),
                     .max_batch = limits.max_batch(),
                     .max_in_flight_requests = limits.max_in_flight_requests(),
                     .grpc_memory_bytes = limits.grpc_memory_bytes(),
                     .max_layer_loads = limits.max_layer_loads(),
                     .max_peer_in_flight_requests = limits.max_peer_in_flight_requests(),
                     .max_peer_in_flight_bytes = limits.max_peer_in_flight_bytes(),
                     .max_head_sequences = limits.max_head_sequences(),
                     .max_layer_weights_bytes = limits.max_layer_weights_bytes()}};
}

}  // namespace triad::client
