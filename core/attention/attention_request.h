// What a caller asks for, before anything has been checked. Mirrors triad.v1.AttendRequest without protobuf; the
// fields' meaning and defaults stand in proto/triad/v1/attention.proto.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/tensor/tensor.h"

namespace triad {

enum class Layout { kTokensHeads, kHeadsTokens, kPacked };
enum class Alignment { kUnspecified, kTopLeft, kBottomRight };

struct Window {
  std::optional<int64_t> left;
  std::optional<int64_t> right;
};

struct AttentionRequest {
  TensorView query;
  TensorView key;
  TensorView value;
  Layout layout = Layout::kTokensHeads;

  std::optional<float> scale;
  float logit_softcap = 0;
  bool causal = false;
  Alignment alignment = Alignment::kUnspecified;
  std::optional<Window> window;
  std::vector<float> alibi_slopes;
  bool alibi = false;
  std::vector<float> sinks;

  std::optional<TensorView> keep;
  std::optional<TensorView> bias;
  std::optional<std::vector<int64_t>> query_lengths;
  std::optional<std::vector<int64_t>> key_lengths;

  bool return_lse = false;
  bool return_weights = false;
};

// Per-request bounds; the server's flags of the same names.
struct AttentionLimits {
  int64_t max_tokens_per_request = 1 << 20;  // query plus key tokens, over all sequences
  int64_t max_head_dim = 2048;
  int64_t max_weights_bytes = int64_t{256} << 20;
  int64_t max_batch = 1 << 16;                     // sequences; each costs bookkeeping even when empty
  int64_t max_message_bytes = int64_t{256} << 20;  // of output, lse and weights together: what the reply will hold
};

}  // namespace triad
