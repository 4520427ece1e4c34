#include "core/attention/validate_attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/attention/problem_layout.h"
#include "core/attention/refuse.h"
#include "core/base/dims.h"

namespace triad {
namespace {

std::string Axis(absl::string_view tensor, int64_t axis) { return absl::StrCat(tensor, ".shape[", axis, "]"); }
std::string Entry(absl::string_view field, size_t index) { return absl::StrCat(field, "[", index, "]"); }

// -- Tensors ---------------------------------------------------------------------------------------------------------

absl::Status CheckShape(absl::string_view field, const TensorView& tensor, int64_t rank, absl::string_view why) {
  if (tensor.rank() != rank) {
    return Refuse(absl::StrCat(field, ".shape"), absl::StrCat("have rank ", rank, " ", why), ToString(tensor.shape));
  }
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (tensor.shape[axis] < 0) return Refuse(Axis(field, axis), "be >= 0", tensor.shape[axis]);
  }
  if (!TensorBytes(tensor.dtype, tensor.shape)) {
    return Refuse(absl::StrCat(field, ".shape"), "describe fewer than 2^63 bytes", ToString(tensor.shape));
  }
  return absl::OkStatus();
}

absl::Status CheckTensors(const AttentionRequest& request, const LayoutAxes& axes) {
  const std::string why = absl::StrCat("(", axes.dimensions, ") in layout ", axes.layout);
  struct Named {
    absl::string_view field;
    const TensorView& tensor;
    absl::string_view heads;
    absl::string_view dim;
  };
  for (const auto& [field, tensor, heads, dim] : {Named{"query", request.query, "heads", "qk_head_dim"},
                                                  {"key", request.key, "kv_heads", "qk_head_dim"},
                                                  {"value", request.value, "kv_heads", "v_head_dim"}}) {
    if (!IsFloat(tensor.dtype)) {
      return Refuse(absl::StrCat(field, ".dtype"), "be FLOAT32, BFLOAT16 or FLOAT16", Name(tensor.dtype));
    }
    if (tensor.dtype != request.query.dtype) {
      return Refuse(absl::StrCat(field, ".dtype"), absl::StrCat("equal query.dtype (", Name(request.query.dtype), ")"),
                    Name(tensor.dtype));
    }
    if (absl::Status status = CheckShape(field, tensor, axes.rank, why); !status.ok()) return status;
    for (const auto& [axis, word] : {std::pair{axes.heads, heads}, {axes.dim, dim}}) {
      if (tensor.shape[axis] >= 1) continue;
      return Refuse(absl::StrCat(Axis(field, axis), " (", word, ")"), "be >= 1", tensor.shape[axis]);
    }
  }
  return absl::OkStatus();
}

// That query, key and value fit each other.
absl::Status CheckAgreement(const AttentionRequest& request, const LayoutAxes& axes) {
  struct Pair {
    absl::string_view field;
    const TensorView& tensor;
    absl::string_view other_field;
    const TensorView& other;
    int64_t axis;
  };
  for (const Pair& pair : {Pair{"key", request.key, "query", request.query, axes.batch},
                           {"key", request.key, "query", request.query, axes.dim},
                           {"value", request.value, "key", request.key, axes.batch},
                           {"value", request.value, "key", request.key, axes.tokens},
                           {"value", request.value, "key", request.key, axes.heads}}) {
    if (pair.axis < 0) continue;
    const int64_t expected = pair.other.shape[pair.axis];
    if (pair.tensor.shape[pair.axis] == expected) continue;
    return Refuse(Axis(pair.field, pair.axis),
                  absl::StrCat("equal ", Axis(pair.other_field, pair.axis), " (", expected, ")"),
                  pair.tensor.shape[pair.axis]);
  }
  const int64_t heads = request.query.shape[axes.heads];
  const int64_t kv_heads = request.key.shape[axes.heads];
  if (heads % kv_heads != 0) {
    return Refuse(absl::StrCat(Axis("key", axes.heads), " (kv_heads)"),
                  absl::StrCat("divide ", Axis("query", axes.heads), " (heads = ", heads, ")"), kv_heads);
  }
  return absl::OkStatus();
}

absl::Status CheckSizeLimits(const RequestSizes& sizes, const LayoutAxes& axes, const AttentionLimits& limits) {
  if (sizes.batch > limits.max_batch) {
    return Refuse(axes.packed() ? "query_lengths" : "query.shape[0]",
                  absl::StrCat("name at most --max_batch = ", limits.max_batch, " sequences"), sizes.batch);
  }
  struct Width {
    absl::string_view field;
    int64_t dim;
  };
  for (const Width& width : {Width{"query", sizes.qk_head_dim}, {"value", sizes.v_head_dim}}) {
    if (width.dim <= limits.max_head_dim) continue;
    return Refuse(Axis(width.field, axes.dim), absl::StrCat("be at most --max_head_dim = ", limits.max_head_dim),
                  width.dim);
  }
  const std::optional<int64_t> per_sequence = CheckedAdd(sizes.q_len, sizes.kv_len);
  const std::optional<int64_t> tokens =
      per_sequence ? CheckedMul(*per_sequence, axes.packed() ? 1 : sizes.batch) : std::nullopt;
  if (!tokens || *tokens > limits.max_tokens_per_request) {
    return Refuse("query and key tokens of all sequences together",
                  absl::StrCat("be at most --max_tokens_per_request = ", limits.max_tokens_per_request),
                  tokens ? absl::StrCat(*tokens) : "more than 2^63");
  }
  return absl::OkStatus();
}

// -- Lengths ---------------------------------------------------------------------------------------------------------

// `tokens` is the most a sequence may have or, PACKED, what all of them add up to; `tokens_axis` is its name.
absl::Status CheckLengths(absl::string_view field, absl::Span<const int64_t> lengths, const RequestSizes& sizes,
                          int64_t tokens, absl::string_view tokens_axis) {
  if (static_cast<int64_t>(lengths.size()) != sizes.batch) {
    return Refuse(field, absl::StrCat("have one entry for each of ", sizes.batch, " sequences"),
                  absl::StrCat(lengths.size(), " entries"));
  }
  for (size_t s = 0; s < lengths.size(); ++s) {
    if (lengths[s] >= 0 && lengths[s] <= tokens) continue;
    return Refuse(Entry(field, s), absl::StrCat("lie between 0 and ", tokens_axis, " = ", tokens), lengths[s]);
  }
  return absl::OkStatus();
}

// PACKED only, after CheckLengths.
absl::Status CheckTotal(absl::string_view field, absl::Span<const int64_t> lengths, int64_t total,
                        absl::string_view axis) {
  int64_t sum = 0;
  for (int64_t length : lengths) {
    const std::optional<int64_t> next = CheckedAdd(sum, length);
    if (!next) return Refuse(field, absl::StrCat("add up to ", axis, " = ", total), "more than 2^63");
    sum = *next;
  }
  if (sum != total) return Refuse(field, absl::StrCat("add up to ", axis, " = ", total), sum);
  return absl::OkStatus();
}

absl::Status CheckAllLengths(const AttentionRequest& request, const LayoutAxes& axes, const RequestSizes& sizes) {
  struct Named {
    absl::string_view field;
    const std::optional<std::vector<int64_t>>& lengths;
    int64_t tokens;
    std::string axis;
  };
  for (const Named& named : {Named{"query_lengths", request.query_lengths, sizes.q_len, Axis("query", axes.tokens)},
                             {"key_lengths", request.key_lengths, sizes.kv_len, Axis("key", axes.tokens)}}) {
    if (!named.lengths) continue;
    absl::Status status = CheckLengths(named.field, *named.lengths, sizes, named.tokens, named.axis);
    if (status.ok() && axes.packed()) status = CheckTotal(named.field, *named.lengths, named.tokens, named.axis);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// -- Scores ----------------------------------------------------------------------------------------------------------

absl::Status CheckAlignment(const AttentionRequest& request, const RequestSizes& sizes) {
  const bool matters = request.causal || request.window || request.alibi || !request.alibi_slopes.empty();
  const bool has_lengths = request.query_lengths || request.key_lengths;
  if (request.alignment != Alignment::kUnspecified || !matters || (sizes.q_len == sizes.kv_len && !has_lengths)) {
    return absl::OkStatus();
  }
  // By shape and presence, never by value: a request that is right today must not become a guess when a length changes.
  return Refuse(
      "alignment",
      "be TOP_LEFT or BOTTOM_RIGHT with causal, window or ALiBi when q_len != kv_len or a lengths field is present",
      absl::StrCat("unspecified, with q_len ", sizes.q_len, ", kv_len ", sizes.kv_len, ", query_lengths ",
                   request.query_lengths ? "present" : "absent", ", key_lengths ",
                   request.key_lengths ? "present" : "absent"));
}

absl::Status CheckScoreRules(const AttentionRequest& request, const RequestSizes& sizes) {
  if (request.scale && !std::isfinite(*request.scale)) return Refuse("scale", "be finite", *request.scale);
  if (!std::isfinite(request.logit_softcap) || request.logit_softcap < 0) {
    return Refuse("logit_softcap", "be finite and >= 0 (0 is off)", request.logit_softcap);
  }
  if (request.window && request.window->left && *request.window->left < 0) {
    return Refuse("window.left", "be >= 0", *request.window->left);
  }
  if (request.window && request.window->right && *request.window->right < 0) {
    return Refuse("window.right", "be >= 0", *request.window->right);
  }
  if (request.alibi && !request.alibi_slopes.empty()) {
    return Refuse("alibi_slopes", "be empty when alibi is true", absl::StrCat(request.alibi_slopes.size(), " entries"));
  }
  absl::Status status = CheckPerHead("alibi_slopes", request.alibi_slopes, sizes.heads, /*may_be_none=*/false);
  if (status.ok()) status = CheckPerHead("sinks", request.sinks, sizes.heads, /*may_be_none=*/true);
  if (!status.ok()) return status;
  return CheckAlignment(request, sizes);
}

// keep and bias: each dimension is the problem's, or 1 where it may be shared; the last is never shared.
absl::Status CheckMask(absl::string_view field, const TensorView& mask, const LayoutAxes& axes,
                       const RequestSizes& sizes) {
  const Shape full = axes.packed() ? Shape{sizes.heads, sizes.q_len, sizes.columns}
                                   : Shape{sizes.batch, sizes.heads, sizes.q_len, sizes.columns};
  const absl::string_view why = axes.packed() ? "([heads|1, total q|1, longest key length]) in layout PACKED"
                                              : "([batch|1, heads|1, q_len|1, kv_len])";
  const int64_t rank = static_cast<int64_t>(full.size());
  if (absl::Status status = CheckShape(field, mask, rank, why); !status.ok()) return status;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const bool may_be_shared = axis + 1 < rank && full[axis] != 1;
    if (mask.shape[axis] == full[axis] || (may_be_shared && mask.shape[axis] == 1)) continue;
    return Refuse(Axis(field, axis), absl::StrCat("be ", full[axis], may_be_shared ? " or 1 " : " ", why),
                  mask.shape[axis]);
  }
  return absl::OkStatus();
}

absl::Status CheckMasks(const AttentionRequest& request, const LayoutAxes& axes, const RequestSizes& sizes) {
  if (request.keep) {
    if (request.keep->dtype != DType::kBool) return Refuse("keep.dtype", "be BOOL", Name(request.keep->dtype));
    if (absl::Status status = CheckMask("keep", *request.keep, axes, sizes); !status.ok()) return status;
  }
  if (request.bias) {
    if (!IsFloat(request.bias->dtype)) {
      return Refuse("bias.dtype", "be FLOAT32, BFLOAT16 or FLOAT16", Name(request.bias->dtype));
    }
    if (absl::Status status = CheckMask("bias", *request.bias, axes, sizes); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// -- Outputs ---------------------------------------------------------------------------------------------------------

absl::Status CheckOutputs(DType dtype, const OutputShapes& shapes, const AttentionLimits& limits) {
  const std::optional<int64_t> output = TensorBytes(dtype, shapes.output);
  const std::optional<int64_t> lse = shapes.lse.empty() ? 0 : TensorBytes(DType::kF32, shapes.lse);
  const std::optional<int64_t> weights = shapes.weights.empty() ? 0 : TensorBytes(DType::kF32, shapes.weights);
  if (!weights || *weights > limits.max_weights_bytes) {
    return Refuse("return_weights", absl::StrCat("ask for at most --max_weights_bytes = ", limits.max_weights_bytes),
                  absl::StrCat(ToString(shapes.weights), " FLOAT32, ",
                               weights ? absl::StrCat(*weights) : "more than 2^63", " bytes"));
  }
  std::optional<int64_t> total = output && lse ? CheckedAdd(*output, *lse) : std::nullopt;
  if (total) total = CheckedAdd(*total, *weights);
  if (!total || *total > limits.max_message_bytes) {
    return Refuse("output, lse and weights together",
                  absl::StrCat("be at most ", limits.max_message_bytes, " bytes, to fit --max_message_bytes"),
                  total ? absl::StrCat(*total) : "more than 2^63");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPerHead(absl::string_view field, absl::Span<const float> values, int64_t heads, bool may_be_none) {
  if (!values.empty() && static_cast<int64_t>(values.size()) != heads) {
    return Refuse(field, absl::StrCat("have one entry for each of ", heads, " heads, or none"),
                  absl::StrCat(values.size(), " entries"));
  }
  for (size_t head = 0; head < values.size(); ++head) {
    if (std::isfinite(values[head])) continue;
    if (may_be_none && values[head] == -std::numeric_limits<float>::infinity()) continue;
    return Refuse(Entry(field, head), may_be_none ? "be finite, or -inf for none" : "be finite", values[head]);
  }
  return absl::OkStatus();
}

std::vector<float> StandardAlibiSlopes(int64_t heads) {
  const int64_t power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  const auto slope = [](double step, int64_t of) {
    return static_cast<float>(std::exp2(-8 * step / static_cast<double>(of)));
  };
  std::vector<float> slopes;
  for (int64_t head = 0; head < power; ++head) slopes.push_back(slope(head + 1, power));
  for (int64_t rest = 0; rest < heads - power; ++rest) slopes.push_back(slope(2 * rest + 1, 2 * power));
  return slopes;
}

absl::StatusOr<AttentionProblem> ValidateAttention(const AttentionRequest& request, const AttentionLimits& limits) {
  const LayoutAxes axes = AxesOf(request.layout);
  if (absl::Status status = CheckTensors(request, axes); !status.ok()) return status;
  if (absl::Status status = CheckAgreement(request, axes); !status.ok()) return status;
  if (axes.packed() && !request.query_lengths) return Refuse("query_lengths", "be given in layout PACKED", "absent");
  if (axes.packed() && !request.key_lengths) return Refuse("key_lengths", "be given in layout PACKED", "absent");

  RequestSizes sizes = {
      .batch = axes.packed() ? static_cast<int64_t>(request.query_lengths->size()) : request.query.shape[0],
      .q_len = request.query.shape[axes.tokens],
      .kv_len = request.key.shape[axes.tokens],
      .heads = request.query.shape[axes.heads],
      .kv_heads = request.key.shape[axes.heads],
      .qk_head_dim = request.query.shape[axes.dim],
      .v_head_dim = request.value.shape[axes.dim],
      .columns = request.key.shape[axes.tokens]};
  if (absl::Status status = CheckSizeLimits(sizes, axes, limits); !status.ok()) return status;
  if (absl::Status status = CheckAllLengths(request, axes, sizes); !status.ok()) return status;
  if (axes.packed()) {
    sizes.columns = 0;
    for (int64_t length : *request.key_lengths) sizes.columns = std::max(sizes.columns, length);
  }
  if (absl::Status status = CheckScoreRules(request, sizes); !status.ok()) return status;
  if (absl::Status status = CheckMasks(request, axes, sizes); !status.ok()) return status;

  const OutputShapes shapes = OutputShapesOf(request, axes, sizes);
  if (absl::Status status = CheckOutputs(request.query.dtype, shapes, limits); !status.ok()) return status;
  return LayOutProblem(request, axes, sizes, shapes);
}

}  // namespace triad
