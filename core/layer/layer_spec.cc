#include "core/layer/layer_spec.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/attention/refuse.h"
#include "core/attention/validate_attention.h"
#include "core/base/dims.h"

namespace triad {
namespace {

// Keeps every angle, a position of 63 bits times a frequency, finite.
constexpr double kMaxFrequency = 0x1p64;
// A name appears in messages, which travel as metadata of some KiB.
constexpr size_t kMaxNameBytes = 512;

std::string Quoted(absl::string_view name) { return absl::StrCat("'", absl::CHexEscape(name), "'"); }

// -- Sizes -----------------------------------------------------------------------------------------------------------

absl::Status CheckSize(absl::string_view field, int64_t size) {
  if (size < 1) return Refuse(field, "be >= 1", size);
  if (size > kMaxLayerWidth) return Refuse(field, absl::StrCat("be at most ", kMaxLayerWidth), size);
  return absl::OkStatus();
}

absl::Status CheckWidth(absl::string_view field, int64_t heads, int64_t head_dim) {
  const std::optional<int64_t> width = CheckedMul(heads, head_dim);
  if (width && *width <= kMaxLayerWidth) return absl::OkStatus();
  return Refuse(field, absl::StrCat("be at most ", kMaxLayerWidth), absl::StrCat(heads, " * ", head_dim));
}

absl::Status CheckSizes(const LayerSpec& spec) {
  for (const auto& [field, size] : {std::pair<absl::string_view, int64_t>{"model_dim", spec.model_dim},
                                    {"heads", spec.heads},
                                    {"output_dim", spec.output_dim},
                                    {"kv_heads", spec.kv_heads},
                                    {"qk_head_dim", spec.qk_head_dim},
                                    {"v_head_dim", spec.v_head_dim}}) {
    if (absl::Status status = CheckSize(field, size); !status.ok()) return status;
  }
  if (spec.context_dim != 0) {
    if (absl::Status status = CheckSize("context_dim, unless 0 for self-attention,", spec.context_dim); !status.ok()) {
      return status;
    }
  }
  if (spec.heads % spec.kv_heads != 0) {
    return Refuse("kv_heads", absl::StrCat("divide heads (", spec.heads, ")"), spec.kv_heads);
  }
  // kv_heads <= heads, so that these two cover keys and values.
  absl::Status status = CheckWidth("heads * qk_head_dim", spec.heads, spec.qk_head_dim);
  if (status.ok()) status = CheckWidth("heads * v_head_dim", spec.heads, spec.v_head_dim);
  return status;
}

// -- Scores ----------------------------------------------------------------------------------------------------------

absl::Status CheckScores(const LayerSpec& spec) {
  if (spec.compute != DType::kF32 && spec.compute != DType::kBf16) {
    return Refuse("compute", "be FLOAT32 or BFLOAT16", Name(spec.compute));
  }
  if (spec.scale && !std::isfinite(*spec.scale)) return Refuse("scale", "be finite", *spec.scale);
  if (!std::isfinite(spec.logit_softcap) || spec.logit_softcap < 0) {
    return Refuse("logit_softcap", "be finite and >= 0 (0 is off)", spec.logit_softcap);
  }
  if (spec.window && spec.window->left.value_or(0) < 0) return Refuse("window.left", "be >= 0", *spec.window->left);
  if (spec.window && spec.window->right.value_or(0) < 0) return Refuse("window.right", "be >= 0", *spec.window->right);
  if (spec.alibi && !spec.alibi_slopes.empty()) {
    return Refuse("alibi_slopes", "be empty when alibi is true", absl::StrCat(spec.alibi_slopes.size(), " entries"));
  }
  absl::Status status = CheckPerHead("alibi_slopes", spec.alibi_slopes, spec.heads, /*may_be_none=*/false);
  if (status.ok()) status = CheckPerHead("sinks", spec.sinks, spec.heads, /*may_be_none=*/true);
  if (!status.ok()) return status;
  const bool matters = spec.causal || spec.window || spec.alibi || !spec.alibi_slopes.empty();
  if (matters && spec.alignment == Alignment::kUnspecified) {
    return Refuse("alignment", "be TOP_LEFT or BOTTOM_RIGHT with causal, window or ALiBi", "unspecified");
  }
  return absl::OkStatus();
}

// -- Rotary embedding ------------------------------------------------------------------------------------------------

absl::Status CheckRotary(const LayerSpec& spec) {
  const RotarySpec& rotary = spec.rotary;
  if (rotary.dim == 0) return absl::OkStatus();
  if (spec.is_cross()) {
    return Refuse("rotary", absl::StrCat("be unset with context_dim (", spec.context_dim, ")"),
                  absl::StrCat("of dim ", rotary.dim));
  }
  if (rotary.dim < 2 || rotary.dim > spec.qk_head_dim || rotary.dim % 2 != 0) {
    return Refuse("rotary.dim", absl::StrCat("be even, from 2 to qk_head_dim (", spec.qk_head_dim, ")"), rotary.dim);
  }
  if (!std::isfinite(rotary.theta) || rotary.theta < 1 / kMaxFrequency) {
    return Refuse("rotary.theta", "be finite and at least 2^-64", rotary.theta);
  }
  if (!rotary.inverse_frequencies.empty() &&
      static_cast<int64_t>(rotary.inverse_frequencies.size()) != rotary.dim / 2) {
    return Refuse("rotary.inverse_frequencies",
                  absl::StrCat("have one entry for each of rotary.dim / 2 (", rotary.dim / 2, ") pairs, or none"),
                  absl::StrCat(rotary.inverse_frequencies.size(), " entries"));
  }
  for (size_t pair = 0; pair < rotary.inverse_frequencies.size(); ++pair) {
    const double frequency = rotary.inverse_frequencies[pair];
    if (std::abs(frequency) <= kMaxFrequency) continue;
    return Refuse(absl::StrCat("rotary.inverse_frequencies[", pair, "]"), "lie between -2^64 and 2^64", frequency);
  }
  if (!(rotary.attention_factor > 0) || rotary.attention_factor > std::numeric_limits<float>::max()) {
    return Refuse("rotary.attention_factor", "be > 0 and finite in FLOAT32", rotary.attention_factor);
  }
  return absl::OkStatus();
}

// -- Names -----------------------------------------------------------------------------------------------------------

struct NamedTensor {
  std::string field;
  absl::string_view name;
};

absl::Status CheckRequiredNames(const LayerSpec& spec) {
  struct Part {
    absl::string_view field;
    const ProjectionNames& names;
  };
  const Part separate[] = {{"query", spec.query}, {"key", spec.key}, {"value", spec.value}};
  if (spec.is_fused() || !spec.fused.bias.empty()) {
    if (!spec.is_fused()) return Refuse("fused.weight", "be named", "empty, with a fused.bias");
    if (spec.is_cross()) {
      return Refuse("fused", absl::StrCat("be unset with context_dim (", spec.context_dim, ")"),
                    Quoted(spec.fused.weight));
    }
    for (const Part& part : separate) {
      const std::string& given = part.names.weight.empty() ? part.names.bias : part.names.weight;
      if (!given.empty()) return Refuse(part.field, "be unset when fused is given", Quoted(given));
    }
  } else {
    for (const Part& part : separate) {
      if (!part.names.weight.empty()) continue;
      return Refuse(absl::StrCat(part.field, ".weight"), "be named, unless fused.weight is", "empty");
    }
  }
  if (spec.output.weight.empty()) return Refuse("output.weight", "be named", "empty");
  return absl::OkStatus();
}

absl::Status CheckNames(const LayerSpec& spec) {
  if (absl::Status status = CheckRequiredNames(spec); !status.ok()) return status;
  std::vector<NamedTensor> tensors;
  for (const auto& [field, names] : {std::pair<absl::string_view, const ProjectionNames&>{"query", spec.query},
                                     {"key", spec.key},
                                     {"value", spec.value},
                                     {"fused", spec.fused},
                                     {"output", spec.output}}) {
    tensors.push_back({absl::StrCat(field, ".weight"), names.weight});
    tensors.push_back({absl::StrCat(field, ".bias"), names.bias});
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& field = tensors[i].field;
    const absl::string_view name = tensors[i].name;
    if (name.size() > kMaxNameBytes) {
      return Refuse(field, absl::StrCat("have at most ", kMaxNameBytes, " bytes"), absl::StrCat(name.size(), " bytes"));
    }
    // Two projections of one tensor are far more often a slip of the pen than a model; whoever has such a model stores
    // the tensor twice.
    const auto end = tensors.begin() + static_cast<std::ptrdiff_t>(i);
    const auto same = std::find_if(tensors.begin(), end, [&](const NamedTensor& other) { return other.name == name; });
    if (!name.empty() && same != end) {
      return Refuse(field, "name a tensor of its own", absl::StrCat(Quoted(name), ", as ", same->field));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateLayerSpec(const LayerSpec& spec) {
  absl::Status status = CheckSizes(spec);
  if (status.ok()) status = CheckScores(spec);
  if (status.ok()) status = CheckRotary(spec);
  if (status.ok()) status = CheckNames(spec);
  return status;
}

}  // namespace triad
