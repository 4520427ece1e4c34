// A request for a hosted layer: what a caller asks, its rules, and the problem that ForwardBatch trusts.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/attention_problem.h"
#include "core/attention/attention_request.h"
#include "core/layer/layer_spec.h"
#include "core/tensor/tensor.h"

namespace triad {

// Mirrors triad.v1.ForwardRequest without protobuf; the fields' meaning and defaults stand in
// proto/triad/v1/attention.proto.
struct ForwardRequest {
  TensorView input;
  Layout layout = Layout::kTokensHeads;  // kTokensHeads: [batch, tokens, model_dim]; kPacked: [total tokens, model_dim]
  std::optional<std::vector<int64_t>> lengths;
  std::optional<TensorView> context;
  std::optional<std::vector<int64_t>> context_lengths;
  std::optional<TensorView> keep;
  std::optional<TensorView> bias;
  std::optional<std::vector<int64_t>> position_offsets;
  bool return_lse = false;
  bool return_weights = false;
};

// Rows [first_row, first_row + rows) of a tensor of hidden states that count; between them lies padding, never read.
struct RowRange {
  int64_t first_row = 0;
  int64_t rows = 0;             // > 0
  int64_t position_offset = 0;  // of its first row, for the rotary embedding
};

struct ForwardProblem {
  DType dtype = DType::kF32;           // of input, context and output
  const std::byte* input = nullptr;    // [.., model_dim], borrowed, any alignment
  const std::byte* context = nullptr;  // [.., context_dim]; null for self-attention
  std::vector<RowRange> input_rows;    // of each sequence that has any, in order
  std::vector<RowRange> context_rows;  // empty for self-attention
  int64_t tokens = 0;                  // rows of input that count
  int64_t context_tokens = 0;          // likewise
  int64_t output_rows = 0;             // padding included

  // The attention in the middle. query, key and value are not set: ForwardBatch does that. Its sequences' query_begin,
  // key_begin, value_begin and output_begin count ROWS among those that count (padding left out), and q_len ==
  // query_length for each; lse, weights, keep and bias lie as in the request. Rows of lse and weights that belong to
  // padding are not the kernel's (ReplyPadding).
  AttentionProblem attention;

  Shape output_shape;  // of input, with the layer's output_dim
};

// Checks every rule of the request against `spec`; the attention in the middle goes through ValidateAttention. Borrows
// the request's tensors. INVALID_ARGUMENT names field, rule and value (and the flag, for a limit). Cost: O(batch).
// Never blocks.
absl::StatusOr<ForwardProblem> ValidateForward(const ForwardRequest& request, const LayerSpec& spec,
                                               const AttentionLimits& limits);

// Floating-point operations that an answer needs: 2 * inputs * outputs for each row of each projection, and the
// attention's.
double FlopNeeded(const ForwardProblem& problem, const LayerSpec& spec);

// Bytes that ForwardBatch holds for `problem` while it runs.
int64_t ActivationBytes(const ForwardProblem& problem, const LayerSpec& spec);

}  // namespace triad
