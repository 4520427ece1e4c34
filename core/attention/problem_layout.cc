#include "core/attention/problem_layout.h"

#include <cmath>

#include "core/attention/validate_attention.h"

namespace triad {
namespace {

// Elements from one entry of the first dimension to the next. Fits: TensorBytes of the whole did.
int64_t OuterStride(const Shape& shape) {
  int64_t stride = 1;
  for (size_t axis = 1; axis < shape.size(); ++axis) stride *= shape[axis];
  return stride;
}

int64_t TokenStride(const Shape& shape, const LayoutAxes& axes) {
  return axes.tokens < axes.heads ? shape[axes.heads] * shape[axes.dim] : shape[axes.dim];
}

int64_t HeadStride(const Shape& shape, const LayoutAxes& axes) {
  return axes.tokens < axes.heads ? shape[axes.dim] : shape[axes.tokens] * shape[axes.dim];
}

HeadRows RowsOf(const TensorView& tensor, const LayoutAxes& axes) {
  return {.data = tensor.data,
          .pieces = tensor.pieces,
          .token_stride = TokenStride(tensor.shape, axes),
          .head_stride = HeadStride(tensor.shape, axes)};
}

// The last three dimensions of a mask are heads, queries and keys in every layout.
ScoreRows ScoreRowsOf(const TensorView& mask) {
  const size_t rank = mask.shape.size();
  const int64_t heads = mask.shape[rank - 3];
  const int64_t queries = mask.shape[rank - 2];
  const int64_t columns = mask.shape[rank - 1];
  return {.data = mask.data,
          .dtype = mask.dtype,
          .head_stride = heads == 1 ? 0 : queries * columns,
          .query_stride = queries == 1 ? 0 : columns};
}

// Where a sequence begins: entry `outer` of the first dimension of a rank-4 mask, or row `first_query` of a PACKED one.
int64_t MaskBegin(const Shape& mask, const ScoreRows& rows, int64_t outer, int64_t first_query) {
  if (mask.size() == 3) return first_query * rows.query_stride;
  return mask[0] == 1 ? 0 : outer * OuterStride(mask);
}

std::vector<Sequence> PlanSequences(const AttentionRequest& request, const LayoutAxes& axes, const RequestSizes& sizes,
                                    const AttentionProblem& problem) {
  std::vector<Sequence> sequences;
  int64_t first_query = 0;  // PACKED: of this sequence, among all
  int64_t first_key = 0;
  for (int64_t b = 0; b < sizes.batch; ++b) {
    const int64_t query_outer = axes.packed() ? first_query : b;
    const int64_t key_outer = axes.packed() ? first_key : b;
    Sequence sequence;
    sequence.query_length = request.query_lengths ? (*request.query_lengths)[b] : sizes.q_len;
    sequence.key_length = request.key_lengths ? (*request.key_lengths)[b] : sizes.kv_len;
    sequence.q_len = axes.packed() ? sequence.query_length : sizes.q_len;
    sequence.kv_len = sizes.columns;
    const bool at_the_end = request.alignment == Alignment::kBottomRight;
    sequence.query_shift = at_the_end ? sequence.key_length - sequence.query_length : 0;
    sequence.query_begin = query_outer * OuterStride(request.query.shape);
    sequence.key_begin = key_outer * OuterStride(request.key.shape);
    sequence.value_begin = key_outer * OuterStride(request.value.shape);
    sequence.output_begin = query_outer * OuterStride(problem.output_shape);
    if (problem.return_lse) sequence.lse_begin = axes.packed() ? first_query : b * OuterStride(problem.lse_shape);
    if (problem.return_weights) {
      sequence.weights_begin = axes.packed() ? first_query * sizes.columns : b * OuterStride(problem.weights_shape);
    }
    if (problem.keep) sequence.keep_begin = MaskBegin(request.keep->shape, *problem.keep, b, first_query);
    if (problem.bias) sequence.bias_begin = MaskBegin(request.bias->shape, *problem.bias, b, first_query);
    first_query += sequence.query_length;
    first_key += sequence.key_length;
    if (sequence.q_len > 0) sequences.push_back(sequence);
  }
  return sequences;
}

}  // namespace

LayoutAxes AxesOf(Layout layout) {
  switch (layout) {
    case Layout::kTokensHeads:
      return {"TOKENS_HEADS", "[batch, tokens, heads, dim]", 4, 0, 1, 2, 3};
    case Layout::kHeadsTokens:
      return {"HEADS_TOKENS", "[batch, heads, tokens, dim]", 4, 0, 2, 1, 3};
    case Layout::kPacked:
      break;
  }
  return {"PACKED", "[total tokens, heads, dim]", 3, -1, 0, 1, 2};
}

OutputShapes OutputShapesOf(const AttentionRequest& request, const LayoutAxes& axes, const RequestSizes& sizes) {
  OutputShapes shapes;
  shapes.output = request.query.shape;
  shapes.output[axes.dim] = sizes.v_head_dim;
  if (request.return_lse) {
    shapes.lse = axes.packed() ? Shape{sizes.heads, sizes.q_len} : Shape{sizes.batch, sizes.heads, sizes.q_len};
  }
  if (request.return_weights) {
    shapes.weights = axes.packed() ? Shape{sizes.heads, sizes.q_len, sizes.columns}
                                   : Shape{sizes.batch, sizes.heads, sizes.q_len, sizes.columns};
  }
  return shapes;
}

AttentionProblem LayOutProblem(const AttentionRequest& request, const LayoutAxes& axes, const RequestSizes& sizes,
                               const OutputShapes& shapes) {
  AttentionProblem problem;
  problem.dtype = request.query.dtype;
  problem.heads = sizes.heads;
  problem.kv_heads = sizes.kv_heads;
  problem.qk_head_dim = sizes.qk_head_dim;
  problem.v_head_dim = sizes.v_head_dim;
  problem.query = RowsOf(request.query, axes);
  problem.key = RowsOf(request.key, axes);
  problem.value = RowsOf(request.value, axes);
  if (request.keep) problem.keep = ScoreRowsOf(*request.keep);
  if (request.bias) problem.bias = ScoreRowsOf(*request.bias);

  problem.output_shape = shapes.output;
  problem.lse_shape = shapes.lse;
  problem.weights_shape = shapes.weights;
  problem.return_lse = request.return_lse;
  problem.return_weights = request.return_weights;
  problem.output_token_stride = TokenStride(shapes.output, axes);
  problem.output_head_stride = HeadStride(shapes.output, axes);
  if (request.return_lse) problem.lse_head_stride = sizes.q_len;
  if (request.return_weights) {
    problem.weights_head_stride = sizes.q_len * sizes.columns;
    problem.weights_query_stride = sizes.columns;
  }
  problem.sequences = PlanSequences(request, axes, sizes, problem);

  problem.scale = request.scale.value_or(static_cast<float>(1 / std::sqrt(static_cast<double>(sizes.qk_head_dim))));
  problem.logit_softcap = request.logit_softcap;
  problem.causal = request.causal;
  if (request.window) {
    problem.window_left = request.window->left.value_or(AttentionProblem::kUnbounded);
    problem.window_right = request.window->right.value_or(AttentionProblem::kUnbounded);
  }
  problem.alibi_slopes = request.alibi_slopes;
  // Without queries nothing bounds `heads`: no bytes stand behind it.
  if (request.alibi && !problem.sequences.empty()) problem.alibi_slopes = StandardAlibiSlopes(sizes.heads);
  problem.sinks = request.sinks;
  return problem;
}

}  // namespace triad
