// What a server says about itself.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace triad::client {

// What the server accepts. Each is a server flag of the same name; 0 means that the server did not say.
struct Limits {
  int64_t max_message_bytes = 0;       // largest message, either way
  int64_t max_tokens_per_request = 0;  // query tokens plus key tokens, over all sequences
  int64_t max_head_dim = 0;            // largest qk_head_dim or v_head_dim
  int64_t max_weights_bytes = 0;       // most bytes of weights in one reply
  int64_t max_in_flight_bytes = 0;     // most bytes of requests and replies that may be there at once
  absl::Duration max_queue_time = {};  // longest a request may wait before it is refused
  int64_t max_streams = 0;             // most streams open at once
  int64_t max_stream_items = 0;        // most items in flight on one stream; past it the server stops reading
  int64_t max_reference_work = 0;      // most multiply-adds of a request with Kernel::kReference
  int64_t max_batch = 0;               // most sequences of one request
  int64_t max_in_flight_requests = 0;  // most requests waiting and running at once
  int64_t grpc_memory_bytes = 0;       // most memory for messages that are still arriving
  int64_t max_layer_loads = 0;         // most LoadLayer calls waiting and running at once
  // Of one client address, and so of all clients on unix sockets together; 0 may also be a bound that is off.
  int64_t max_peer_in_flight_requests = 0;
  int64_t max_peer_in_flight_bytes = 0;
  int64_t max_head_sequences = 0;       // most sequences * kv_heads of one request
  int64_t max_layer_weights_bytes = 0;  // most bytes of packed weights of layers in memory; 0 may also be no bound
};

struct ServerInfo {
  std::string version = {};          // "major.minor.patch"
  std::string instruction_set = {};  // such as "avx2" or "avx512_bf16"
  std::string kernel = {};           // the one that answers Kernel::kAuto, such as "fused"
  std::string onednn_version = {};   // "major.minor.patch"
  int32_t threads = 0;               // compute threads
  Limits limits = {};
};

// grpc.health.v1.HealthCheckResponse.ServingStatus.
enum class Health {
  kUnknown = 0,
  kServing = 1,
  kNotServing = 2,
};

}  // namespace triad::client
