// What is sent: one kind of request, and what tells its requests apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "core/tensor/dtype.h"

namespace triad::tools {

// What all requests of a run have in common.
struct Workload {
  enum class Kind { kAttend, kForward };
  Kind kind = Kind::kAttend;
  DType dtype = DType::kF32;
  int64_t batch = 1;
  double keep = 1;  // share of the keys that a keep mask leaves visible; 1: no mask is sent

  // kAttend
  int64_t heads = 8;
  int64_t kv_heads = 8;
  int64_t qk_head_dim = 64;
  int64_t v_head_dim = 64;
  bool causal = false;  // aligned BOTTOM_RIGHT

  // kForward. The widths are the layer's; a context_dim > 0 has a context sent along.
  std::string layer = {};
  std::optional<int64_t> layer_version = {};
  int64_t model_dim = 0;
  int64_t context_dim = 0;
};

// One request, by value: with its workload, all that its bytes are made from.
struct PlannedRequest {
  int64_t tokens = 0;  // q_len of an Attend
  int64_t kv_len = 0;  // keys, or tokens of a context; equal to `tokens` where the kind knows no other
  uint64_t seed = 0;   // of the tensors' contents

  friend bool operator==(const PlannedRequest&, const PlannedRequest&) = default;
};

// INVALID_ARGUMENT names the flag at fault, its rule and its value.
absl::Status CheckWorkload(const Workload& workload);

}  // namespace triad::tools
