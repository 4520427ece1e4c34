#include "server/server_info.h"

namespace triad {

v1::ServerInfo MakeServerInfo(const BuildInfo& build, int threads, const ServerOptions& options) {
  v1::ServerInfo info;
  info.set_version(build.version);
  info.set_instruction_set(build.instruction_set);
  info.set_kernel(build.kernel);
  info.set_onednn_version(build.onednn_version);
  info.set_threads(threads);
  v1::ServerInfo::Limits& limits = *info.mutable_limits();
  limits.set_max_message_bytes(options.max_message_bytes);
  limits.set_max_tokens_per_request(options.max_tokens_per_request);
  limits.set_max_head_dim(options.max_head_dim);
  limits.set_max_weights_bytes(options.max_weights_bytes);
  limits.set_max_in_flight_bytes(options.max_in_flight_bytes);
  limits.set_max_queue_time_ns(absl::ToInt64Nanoseconds(options.max_queue_time));
  limits.set_max_streams(options.max_streams);
  limits.set_max_stream_items(options.max_stream_items);
  limits.set_max_reference_work(options.max_reference_work);
  limits.set_max_batch(options.max_batch);
  limits.set_max_in_flight_requests(options.max_in_flight_requests);
  limits.set_grpc_memory_bytes(options.grpc_memory_bytes);
  limits.set_max_layer_loads(options.max_layer_loads);
  limits.set_max_peer_in_flight_requests(options.max_peer_in_flight_requests);
  limits.set_max_peer_in_flight_bytes(options.max_peer_in_flight_bytes);
  limits.set_max_head_sequences(options.max_head_sequences);
  limits.set_max_layer_weights_bytes(options.max_layer_weights_bytes);
  return info;
}

}  // namespace triad
