// Hidden states for a layer that the server hosts, and its answer. These mirror triad.v1.ForwardRequest and
// ForwardResponse, whose comments (proto/triad/v1/attention.proto) define what each field means; here stand shapes and
// defaults.
//
// Dimension words as in attend.h; model_dim is the width of a hidden state, tokens are those of a sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "triad/attend.h"
#include "triad/tensor.h"

namespace triad::client {

// Borrows its tensors as AttendRequest does. What belongs to the model (scale, causal, window, rotary embedding, ...)
// is the layer's own.
struct ForwardRequest {
  std::string layer = {};                // its name
  std::optional<int64_t> version = {};   // unset: the highest that is loaded
  TensorView input = {};                 // hidden states [batch, tokens, model_dim]; kPacked: [total tokens, model_dim]
  Layout layout = Layout::kTokensHeads;  // or kPacked, which needs lengths
  std::optional<std::vector<int64_t>> lengths = {};  // [batch], valid tokens of each sequence; unset: all

  // Cross-attention: where keys and values come from; laid out as input is, of the layer's context width.
  std::optional<TensorView> context = {};
  std::optional<std::vector<int64_t>> context_lengths = {};  // [batch]; unset: all

  std::optional<TensorView> keep = {};                        // as in AttendRequest
  std::optional<TensorView> bias = {};                        // as in AttendRequest
  std::optional<std::vector<int64_t>> position_offsets = {};  // [batch], rotary position of each first token; unset: 0

  bool return_lse = false;
  bool return_weights = false;  // tokens x tokens (or context's tokens) floats for every head
  Priority priority = Priority::kNormal;
};

struct ForwardResponse {
  Tensor output = {};                  // layout and type of input, the layer's output width as last dimension
  std::optional<Tensor> lse = {};      // as in AttendResponse
  std::optional<Tensor> weights = {};  // as in AttendResponse
  int64_t version = 0;                 // of the layer that answered
  Timings timings = {};                // with batch_requests and batch_tokens
};

}  // namespace triad::client
