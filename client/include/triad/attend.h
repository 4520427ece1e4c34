// One attention problem and its answer. These mirror triad.v1.AttendRequest and AttendResponse, whose comments
// (proto/triad/v1/attention.proto) define what each field means; here stand shapes and defaults.
//
// Dimension words: batch (sequences), heads (query heads), kv_heads (key and value heads), q_len, kv_len, qk_head_dim,
// v_head_dim.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "triad/tensor.h"

namespace triad::client {

// How query, key, value and output lie in memory. PACKED needs both lengths.
enum class Layout {
  kTokensHeads = 1,  // [batch, tokens, heads, dim]
  kHeadsTokens = 2,  // [batch, heads, tokens, dim]
  kPacked = 3,       // [total tokens, heads, dim], sequences one after another
};

// Which key position a query stands at; must be named with causal, window or ALiBi when q_len != kv_len or any lengths
// are given.
enum class Alignment {
  kUnspecified = 0,
  kTopLeft = 1,      // query i at key i
  kBottomRight = 2,  // the last query at the last key: what a key-value cache needs
};

// kReference: plain loops in double precision, slow and trusted.
enum class Kernel { kAuto = 0, kReference = 1 };

// kLow is served when nothing normal waits.
enum class Priority { kNormal = 1, kLow = 2 };

// Keys further than `left` before or `right` after a query's aligned position are hidden. Unset: no bound.
struct Window {
  std::optional<int64_t> left = {};
  std::optional<int64_t> right = {};
};

// Borrows its tensors, but for those that have an owner; the function that takes the request says until when.
struct AttendRequest {
  TensorView query = {};  // [batch, q_len, heads, qk_head_dim] in kTokensHeads; kFloat32, kBfloat16 or kFloat16
  TensorView key = {};    // [batch, kv_len, kv_heads, qk_head_dim]; the type of query; kv_heads divides heads
  TensorView value = {};  // [batch, kv_len, kv_heads, v_head_dim]; the type of query
  Layout layout = Layout::kTokensHeads;

  std::optional<float> scale = {};  // factor on q . k; unset: 1 / sqrt(qk_head_dim)
  float logit_softcap = 0;          // 0: off
  bool causal = false;
  Alignment alignment = Alignment::kUnspecified;
  std::optional<Window> window = {};
  std::vector<float> alibi_slopes = {};  // [heads]; empty: none
  bool alibi = false;                    // slopes by the rule of Press et al. 2022; excludes alibi_slopes
  std::vector<float> sinks = {};         // [heads]; empty: none

  // kBool, true = visible; [batch|1, heads|1, q_len|1, kv_len]; see the .proto for kPacked.
  std::optional<TensorView> keep = {};
  std::optional<TensorView> bias = {};  // added to the scores; shapes as keep; kFloat32, kBfloat16 or kFloat16
  std::optional<std::vector<int64_t>> query_lengths = {};  // [batch], valid queries of each sequence; unset: all
  std::optional<std::vector<int64_t>> key_lengths = {};    // [batch], valid keys of each sequence; unset: all

  bool return_lse = false;
  bool return_weights = false;  // q_len x kv_len floats for every head
  Kernel kernel = Kernel::kAuto;
  Priority priority = Priority::kNormal;
};

// Where the time of one request went, on the server.
struct Timings {
  absl::Duration queue = {};    // accepted to the start of its first work item
  absl::Duration compute = {};  // start of its first work item to the end of its last
  absl::Duration total = {};    // whole message received to reply handed to the transport
  int64_t batch_requests = 0;   // Forward: how many requests shared this one's projections, itself included; else 0
  int64_t batch_tokens = 0;     // Forward: how many tokens those had together; else 0
};

struct AttendResponse {
  Tensor output = {};                  // layout and type of query, v_head_dim as last dimension
  std::optional<Tensor> lse = {};      // kFloat32 [batch, heads, q_len] or [heads, total q]; set when asked for
  std::optional<Tensor> weights = {};  // kFloat32 [batch, heads, q_len, kv_len] or [heads, total q, longest key length]
  Timings timings = {};
};

}  // namespace triad::client
