// The layers that a server hosts. These mirror the messages of triad.v1.LayerService (proto/triad/v1/layer.proto).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace triad::client {

// Which layer is meant.
struct LayerName {
  std::string name = {};
  std::optional<int64_t> version = {};  // > 0; unset: the highest, where that is allowed
};

// One loaded version of a layer.
struct Layer {
  std::string name = {};
  int64_t version = 0;
  int64_t model_dim = 0;    // width of its input
  int64_t context_dim = 0;  // width of the context; model_dim for self-attention
  int64_t output_dim = 0;   // width of its output
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t qk_head_dim = 0;
  int64_t v_head_dim = 0;
  bool causal = false;
  int64_t rotary_dim = 0;         // dimensions of each head that the rotary embedding turns; 0: none
  bool requires_context = false;  // cross-attention
  int64_t weights_bytes = 0;      // memory of its packed weights
};

}  // namespace triad::client
