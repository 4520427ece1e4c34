// How a request's tensors lie, and the problem that reads them so. The second half of ValidateAttention, for requests
// that have passed its rules.
#pragma once

#include "core/attention/attention_problem.h"
#include "core/attention/attention_request.h"

namespace triad {

// Where the dimensions of query, key, value and output stand in a layout.
struct LayoutAxes {
  absl::string_view layout;
  absl::string_view dimensions;
  int64_t rank;
  int64_t batch;  // -1: none, sequences lie one after another
  int64_t tokens;
  int64_t heads;
  int64_t dim;

  bool packed() const { return batch < 0; }
};

LayoutAxes AxesOf(Layout layout);

// The sizes that the rules speak of. Read after the ranks were checked.
struct RequestSizes {
  int64_t batch = 0;
  int64_t q_len = 0;   // PACKED: of all sequences together
  int64_t kv_len = 0;  // likewise
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t qk_head_dim = 0;
  int64_t v_head_dim = 0;
  int64_t columns = 0;  // of keep, bias and weights: kv_len, or the longest key length when PACKED
};

// Shapes of the answers; lse and weights empty unless requested.
struct OutputShapes {
  Shape output;
  Shape lse;
  Shape weights;
};

OutputShapes OutputShapesOf(const AttentionRequest& request, const LayoutAxes& axes, const RequestSizes& sizes);

// The problem, borrowing the request's tensors. Every size of the request and of `shapes` fits in int64_t when counted
// in bytes, and every rule holds.
AttentionProblem LayOutProblem(const AttentionRequest& request, const LayoutAxes& axes, const RequestSizes& sizes,
                               const OutputShapes& shapes);

}  // namespace triad
