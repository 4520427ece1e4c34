#include "core/layer/forward_problem.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/attention/refuse.h"
#include "core/attention/validate_attention.h"
#include "core/base/dims.h"
#include "core/layer/activation_layout.h"
#include "core/layer/rotary.h"

namespace triad {
namespace {

// Hidden states of some sequences, input or context, and how many rows of each count.
struct HiddenStates {
  absl::string_view name;          // "input", "context"
  absl::string_view lengths_name;  // "lengths", "context_lengths"
  const TensorView& tensor;
  const std::optional<std::vector<int64_t>>& lengths;
  int64_t width;
  absl::string_view width_name;
  bool packed;

  int64_t batch() const { return packed ? static_cast<int64_t>(lengths->size()) : tensor.shape[0]; }
  int64_t tokens() const { return tensor.shape[packed ? 0 : 1]; }  // PACKED: of all sequences together
  int64_t length(int64_t sequence) const { return lengths ? (*lengths)[sequence] : tokens(); }
};

absl::Status CheckTensor(const HiddenStates& states) {
  const TensorView& tensor = states.tensor;
  if (!IsFloat(tensor.dtype)) {
    return Refuse(absl::StrCat(states.name, ".dtype"), "be FLOAT32, BFLOAT16 or FLOAT16", Name(tensor.dtype));
  }
  const int64_t rank = states.packed ? 2 : 3;
  const std::string shape = absl::StrCat(states.name, ".shape");
  if (tensor.rank() != rank) {
    return Refuse(shape,
                  states.packed
                      ? absl::StrCat("have rank 2 ([total tokens, ", states.width_name, "]) in layout PACKED")
                      : absl::StrCat("have rank 3 ([batch, tokens, ", states.width_name, "]) in layout TOKENS_HEADS"),
                  ToString(tensor.shape));
  }
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (tensor.shape[axis] < 0) return Refuse(absl::StrCat(shape, "[", axis, "]"), "be >= 0", tensor.shape[axis]);
  }
  if (tensor.shape[rank - 1] != states.width) {
    return Refuse(absl::StrCat(shape, "[", rank - 1, "]"),
                  absl::StrCat("be the layer's ", states.width_name, " = ", states.width), tensor.shape[rank - 1]);
  }
  if (!TensorBytes(tensor.dtype, tensor.shape)) {
    return Refuse(shape, "describe fewer than 2^63 bytes", ToString(tensor.shape));
  }
  return absl::OkStatus();
}

absl::Status CheckLengths(const HiddenStates& states, int64_t batch) {
  if (!states.lengths) {
    return states.packed ? Refuse(states.lengths_name, "be given in layout PACKED", "absent") : absl::OkStatus();
  }
  const std::vector<int64_t>& lengths = *states.lengths;
  if (static_cast<int64_t>(lengths.size()) != batch) {
    return Refuse(states.lengths_name, absl::StrCat("have one entry for each of ", batch, " sequences"),
                  absl::StrCat(lengths.size(), " entries"));
  }
  const std::string tokens = absl::StrCat(states.name, ".shape[", states.packed ? 0 : 1, "] = ", states.tokens());
  int64_t sum = 0;
  for (size_t s = 0; s < lengths.size(); ++s) {
    if (lengths[s] < 0 || lengths[s] > states.tokens()) {
      return Refuse(absl::StrCat(states.lengths_name, "[", s, "]"), absl::StrCat("lie between 0 and ", tokens),
                    lengths[s]);
    }
    const std::optional<int64_t> next = CheckedAdd(sum, lengths[s]);
    if (!next && states.packed) return Refuse(states.lengths_name, absl::StrCat("add up to ", tokens), "2^63 or more");
    sum = next.value_or(sum);
  }
  if (states.packed && sum != states.tokens()) {
    return Refuse(states.lengths_name, absl::StrCat("add up to ", tokens), sum);
  }
  return absl::OkStatus();
}

absl::Status CheckContext(const HiddenStates& input, const ForwardRequest& request, const LayerSpec& spec) {
  if (!spec.is_cross()) {
    if (request.context) return Refuse("context", "be absent: the layer is self-attention", "present");
    if (request.context_lengths) return Refuse("context_lengths", "be absent without a context", "present");
    return absl::OkStatus();
  }
  const HiddenStates context{.name = "context",
                             .lengths_name = "context_lengths",
                             .tensor = *request.context,
                             .lengths = request.context_lengths,
                             .width = spec.context_dim,
                             .width_name = "context_dim",
                             .packed = input.packed};
  if (absl::Status status = CheckTensor(context); !status.ok()) return status;
  if (context.tensor.dtype != input.tensor.dtype) {
    return Refuse("context.dtype", absl::StrCat("equal input.dtype (", Name(input.tensor.dtype), ")"),
                  Name(context.tensor.dtype));
  }
  if (!input.packed && context.tensor.shape[0] != input.batch()) {
    return Refuse("context.shape[0]", absl::StrCat("equal input.shape[0] (", input.batch(), ")"),
                  context.tensor.shape[0]);
  }
  return CheckLengths(context, input.batch());
}

absl::Status CheckOffsets(const ForwardRequest& request, const LayerSpec& spec, int64_t batch) {
  if (!request.position_offsets) return absl::OkStatus();
  const std::vector<int64_t>& offsets = *request.position_offsets;
  // Whoever sends offsets counts on their effect; a layer without positions has none to give.
  if (spec.rotary.dim == 0) {
    return Refuse("position_offsets", "be absent: the layer has no rotary embedding",
                  absl::StrCat(offsets.size(), " entries"));
  }
  if (static_cast<int64_t>(offsets.size()) != batch) {
    return Refuse("position_offsets", absl::StrCat("have one entry for each of ", batch, " sequences"),
                  absl::StrCat(offsets.size(), " entries"));
  }
  for (size_t s = 0; s < offsets.size(); ++s) {
    if (offsets[s] >= 0 && offsets[s] <= kMaxPositionOffset) continue;
    return Refuse(absl::StrCat("position_offsets[", s, "]"),
                  absl::StrCat("lie between 0 and 2^40 = ", kMaxPositionOffset), offsets[s]);
  }
  return absl::OkStatus();
}

// The attention in the middle as a request: shapes without data.
AttentionRequest MiddleOf(const ForwardRequest& request, const LayerSpec& spec, bool packed) {
  AttentionRequest middle;
  const TensorView& keys_from = spec.is_cross() ? *request.context : request.input;
  const auto heads_of = [&](const TensorView& states, int64_t heads, int64_t head_dim) {
    TensorView view{.dtype = spec.compute, .shape = states.shape};
    view.shape.back() = heads;
    view.shape.push_back(head_dim);
    return view;
  };
  middle.query = heads_of(request.input, spec.heads, spec.qk_head_dim);
  middle.key = heads_of(keys_from, spec.kv_heads, spec.qk_head_dim);
  middle.value = heads_of(keys_from, spec.kv_heads, spec.v_head_dim);
  middle.layout = packed ? Layout::kPacked : Layout::kTokensHeads;
  middle.scale = spec.scale;
  middle.logit_softcap = spec.logit_softcap;
  middle.causal = spec.causal;
  middle.alignment = spec.alignment;
  middle.window = spec.window;
  middle.alibi_slopes = spec.alibi_slopes;
  middle.alibi = spec.alibi;
  middle.sinks = spec.sinks;
  middle.keep = request.keep;
  middle.bias = request.bias;
  middle.query_lengths = request.lengths;
  middle.key_lengths = spec.is_cross() ? request.context_lengths : request.lengths;
  middle.return_lse = request.return_lse;
  middle.return_weights = request.return_weights;
  return middle;
}

absl::Status CheckReplyBytes(const ForwardProblem& problem, const AttentionLimits& limits) {
  const auto bytes_of = [](DType dtype, const Shape& shape) { return shape.empty() ? 0 : TensorBytes(dtype, shape); };
  std::optional<int64_t> total = TensorBytes(problem.dtype, problem.output_shape);
  for (const Shape& shape : {problem.attention.lse_shape, problem.attention.weights_shape}) {
    const std::optional<int64_t> bytes = bytes_of(DType::kF32, shape);
    total = total && bytes ? CheckedAdd(*total, *bytes) : std::nullopt;
  }
  if (total && *total <= limits.max_message_bytes) return absl::OkStatus();
  return Refuse("output, lse and weights together",
                absl::StrCat("be at most ", limits.max_message_bytes, " bytes, to fit --max_message_bytes"),
                total ? absl::StrCat(*total) : "more than 2^63");
}

// Sequence `s` of `states` as rows of its tensor.
RowRange RowsOf(const HiddenStates& states, int64_t s, int64_t rows_before) {
  return {.first_row = states.packed ? rows_before : s * states.tokens(), .rows = states.length(s)};
}

// Fills in what counts: the rows of each sequence, and where the attention's sequences begin among them.
void CountRows(const HiddenStates& input, const HiddenStates* context,
               const std::optional<std::vector<int64_t>>& offsets, ForwardProblem& problem) {
  std::vector<Sequence>& sequences = problem.attention.sequences;
  size_t planned = 0;  // sequences that the attention plans: those that have rows in the reply
  size_t kept = 0;     // of those, the ones with rows that count
  for (int64_t s = 0; s < input.batch(); ++s) {
    RowRange rows = RowsOf(input, s, problem.tokens);
    if (offsets) rows.position_offset = (*offsets)[s];
    const RowRange keys = context == nullptr ? rows : RowsOf(*context, s, problem.context_tokens);
    const int64_t keys_before = context == nullptr ? problem.tokens : problem.context_tokens;
    const bool is_planned = input.packed ? rows.rows > 0 : input.tokens() > 0;
    if (is_planned && rows.rows > 0) {
      Sequence sequence = sequences[planned];
      sequence.q_len = rows.rows;
      sequence.query_begin = sequence.output_begin = problem.tokens;
      sequence.key_begin = sequence.value_begin = keys_before;
      sequences[kept++] = sequence;
    }
    if (is_planned) ++planned;
    if (rows.rows > 0) problem.input_rows.push_back(rows);
    problem.tokens += rows.rows;
    if (context == nullptr) continue;
    if (keys.rows > 0) problem.context_rows.push_back(keys);
    problem.context_tokens += keys.rows;
  }
  sequences.resize(kept);
}

}  // namespace

absl::StatusOr<ForwardProblem> ValidateForward(const ForwardRequest& request, const LayerSpec& spec,
                                               const AttentionLimits& limits) {
  if (request.layout == Layout::kHeadsTokens) {
    return Refuse("layout", "be TOKENS_HEADS or PACKED: hidden states have no heads", "HEADS_TOKENS");
  }
  const HiddenStates input{.name = "input",
                           .lengths_name = "lengths",
                           .tensor = request.input,
                           .lengths = request.lengths,
                           .width = spec.model_dim,
                           .width_name = "model_dim",
                           .packed = request.layout == Layout::kPacked};
  if (absl::Status status = CheckTensor(input); !status.ok()) return status;
  if (input.packed && !request.lengths) return Refuse("lengths", "be given in layout PACKED", "absent");
  if (input.batch() > limits.max_batch) {
    return Refuse(input.packed ? "lengths" : "input.shape[0]",
                  absl::StrCat("name at most --max_batch = ", limits.max_batch, " sequences"), input.batch());
  }
  if (absl::Status status = CheckLengths(input, input.batch()); !status.ok()) return status;
  if (spec.is_cross() && !request.context) return Refuse("context", "be given: the layer is cross-attention", "absent");
  if (absl::Status status = CheckContext(input, request, spec); !status.ok()) return status;
  if (absl::Status status = CheckOffsets(request, spec, input.batch()); !status.ok()) return status;

  AttentionLimits middle_limits = limits;
  middle_limits.max_head_dim = std::numeric_limits<int64_t>::max();       // the layer's own, not the request's choice
  middle_limits.max_message_bytes = std::numeric_limits<int64_t>::max();  // the reply's output is another
  absl::StatusOr<AttentionProblem> attention = ValidateAttention(MiddleOf(request, spec, input.packed), middle_limits);
  if (!attention.ok()) return attention.status();

  ForwardProblem problem{.dtype = request.input.dtype, .input = request.input.data};
  problem.attention = *std::move(attention);
  problem.output_shape = request.input.shape;
  problem.output_shape.back() = spec.output_dim;
  if (absl::Status status = CheckReplyBytes(problem, limits); !status.ok()) return status;
  problem.output_rows = input.packed ? input.tokens() : input.batch() * input.tokens();
  if (!spec.is_cross()) {
    CountRows(input, /*context=*/nullptr, request.position_offsets, problem);
    return problem;
  }
  problem.context = request.context->data;
  const HiddenStates context{.tensor = *request.context, .lengths = request.context_lengths, .packed = input.packed};
  CountRows(input, &context, request.position_offsets, problem);
  return problem;
}

double FlopNeeded(const ForwardProblem& problem, const LayerSpec& spec) {
  const auto product = [](int64_t rows, int64_t inputs, int64_t outputs) {
    return 2 * static_cast<double>(rows) * static_cast<double>(inputs) * static_cast<double>(outputs);
  };
  const int64_t key_rows = spec.is_cross() ? problem.context_tokens : problem.tokens;
  return product(problem.tokens, spec.model_dim, spec.query_width()) +
         product(key_rows, spec.key_input_dim(), spec.key_width() + spec.value_width()) +
         product(problem.tokens, spec.mixed_width(), spec.output_dim) + FlopNeeded(problem.attention);
}

int64_t ActivationBytes(const ForwardProblem& problem, const LayerSpec& spec) {
  const ActivationLayout layout = LayoutOf(spec);
  const int64_t elements =
      problem.tokens * (layout.query_stride + layout.mixed_stride) + problem.context_tokens * layout.context_stride;
  const auto plans = static_cast<int64_t>(problem.attention.sequences.size() * sizeof(Sequence) +
                                          problem.input_rows.size() * 2 * sizeof(RowRange) +
                                          problem.context_rows.size() * 2 * sizeof(RowRange));
  return elements * ByteSize(spec.compute) + plans;
}

}  // namespace triad
