// One attention problem with every rule already checked: what kernels work on. Layouts are gone: a kernel sees strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/tensor/tensor.h"

namespace triad {

// Borrows rows of `heads` heads. Row t of head h of a sequence that begins at element `begin` starts at element
// begin + t * token_stride + h * head_stride; its dims are contiguous. Not aligned.
struct HeadRows {
  const std::byte* data = nullptr;
  const Pieces* pieces = nullptr;  // set: the bytes are these, and `data` is null (AttentionKernel::ReadsPieces)
  int64_t token_stride = 0;
  int64_t head_stride = 0;

  // Bytes [begin, begin + count) where they lie or, if they lie in more than one piece, copied to `spare`.
  const std::byte* Bytes(int64_t begin, int64_t count, std::byte* spare) const;
};

// Borrows a mask or bias. Entry (query i, key j) of head h of a sequence that begins at `begin` is element
// begin + h * head_stride + i * query_stride + j. A broadcast dimension has stride 0.
struct ScoreRows {
  const std::byte* data = nullptr;
  DType dtype = DType::kBool;
  int64_t head_stride = 0;
  int64_t query_stride = 0;
};

// One sequence: where its rows begin (in elements of the tensor named) and how many there are.
struct Sequence {
  int64_t query_begin = 0;
  int64_t key_begin = 0;
  int64_t value_begin = 0;
  int64_t output_begin = 0;
  int64_t lse_begin = 0;
  int64_t weights_begin = 0;
  int64_t keep_begin = 0;
  int64_t bias_begin = 0;

  int64_t q_len = 0;         // rows of the answer
  int64_t query_length = 0;  // rows that count, <= q_len; the rest get 0 and lse -inf
  int64_t kv_len = 0;        // columns of weights that belong to this sequence
  int64_t key_length = 0;    // keys that count, <= kv_len; the rest are never read
  int64_t query_shift = 0;   // aligned position of query i is i + query_shift; may be negative
};

// The keys [begin, end) that lengths, causal and window leave to a query; keep and bias may hide more of them.
struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;  // >= begin
};

struct AttentionProblem {
  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

  DType dtype = DType::kF32;  // of query, key, value and output
  int64_t heads = 1;
  int64_t kv_heads = 1;
  int64_t qk_head_dim = 1;
  int64_t v_head_dim = 1;
  HeadRows query;
  HeadRows key;
  HeadRows value;
  std::vector<Sequence> sequences;  // those with q_len > 0: the others have nothing to write

  float scale = 1;
  float logit_softcap = 0;  // 0: off
  bool causal = false;
  int64_t window_left = kUnbounded;   // >= 0
  int64_t window_right = kUnbounded;  // >= 0
  std::vector<float> alibi_slopes;    // one per head, or empty
  std::vector<float> sinks;           // one per head, or empty; -inf is none
  std::optional<ScoreRows> keep;
  std::optional<ScoreRows> bias;

  // Strides of the answers, in elements. lse and weights are those of [batch, heads, q_len(, kv_len)] or, PACKED,
  // [heads, total q(, longest key length)].
  int64_t output_token_stride = 0;
  int64_t output_head_stride = 0;
  int64_t lse_head_stride = 0;
  int64_t weights_head_stride = 0;
  int64_t weights_query_stride = 0;
  Shape output_shape;
  Shape lse_shape;      // [] unless return_lse
  Shape weights_shape;  // [] unless return_weights
  bool return_lse = false;
  bool return_weights = false;

  int64_t group() const { return heads / kv_heads; }
  // Keys that query `i` (< query_length) of `sequence` may see.
  KeyRange VisibleKeys(const Sequence& sequence, int64_t i) const;
};

// Where a kernel writes. The caller owns all three, sized by the problem's shapes, in any state: every element is
// written. lse and weights are null unless the problem returns them.
struct AttentionOutputs {
  std::byte* output = nullptr;  // dtype of the problem; any alignment
  float* lse = nullptr;         // any alignment
  float* weights = nullptr;     // any alignment
};

// Floating-point operations that an answer needs: 2 * (qk_head_dim + v_head_dim) for each pair of a query and a key in
// its VisibleKeys, over all heads. A double, because 64 k x 64 k x 2048 x heads passes int64.
double FlopNeeded(const AttentionProblem& problem);

}  // namespace triad
