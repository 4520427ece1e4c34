#include "client/tools/import/layer_text.h"

#include <charconv>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace triad::tools {
namespace {

// The fewest digits that are read back as the same f32 or f64.
template <typename Float>
std::string Digits(Float value) {
  char text[32];  // the longest f64 has 24
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

void AppendProjection(absl::string_view field, const ProjectionText& projection, std::string& text) {
  if (projection.weight.empty()) return;
  absl::StrAppend(&text, field, " { weight: \"", absl::CEscape(projection.weight), "\"");
  if (!projection.bias.empty()) absl::StrAppend(&text, " bias: \"", absl::CEscape(projection.bias), "\"");
  absl::StrAppend(&text, " }\n");
}

void AppendRotary(const RotaryText& rotary, std::string& text) {
  if (rotary.dim == 0) return;
  absl::StrAppend(&text, "rotary {\n  dim: ", rotary.dim, "\n  pairs: HALVES\n");
  if (rotary.inverse_frequencies.empty()) absl::StrAppend(&text, "  theta: ", Digits(rotary.theta), "\n");
  for (const double frequency : rotary.inverse_frequencies) {
    absl::StrAppend(&text, "  inverse_frequencies: ", Digits(frequency), "\n");
  }
  if (rotary.attention_factor != 1) {
    absl::StrAppend(&text, "  attention_factor: ", Digits(rotary.attention_factor), "\n");
  }
  absl::StrAppend(&text, "}\n");
}

}  // namespace

std::string FormatLayer(const LayerText& layer) {
  std::string text = absl::StrCat("model_dim: ", layer.model_dim, "\nheads: ", layer.heads, "\n");
  if (layer.kv_heads != layer.heads) absl::StrAppend(&text, "kv_heads: ", layer.kv_heads, "\n");
  absl::StrAppend(&text, "qk_head_dim: ", layer.head_dim, "\n");
  if (layer.bf16_compute) absl::StrAppend(&text, "compute: BFLOAT16\n");
  if (layer.scale) absl::StrAppend(&text, "scale: ", Digits(*layer.scale), "\n");
  if (layer.causal) absl::StrAppend(&text, "causal: true\n");
  if (layer.window_left) absl::StrAppend(&text, "window { left: ", *layer.window_left, " }\n");
  AppendRotary(layer.rotary, text);
  if (layer.in_out) absl::StrAppend(&text, "weight_order: IN_OUT\n");
  AppendProjection("query", layer.query, text);
  AppendProjection("key", layer.key, text);
  AppendProjection("value", layer.value, text);
  AppendProjection("fused", layer.fused, text);
  AppendProjection("output", layer.output, text);
  return text;
}

}  // namespace triad::tools
