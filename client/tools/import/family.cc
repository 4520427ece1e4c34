#include "client/tools/import/family.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/tools/import/rotary_scaling.h"

namespace triad::tools {
namespace {

using Names = absl::string_view[];

constexpr Names kBertPrefixes = {"", "bert.", "roberta.", "electra."};
constexpr Names kBertAttention = {"attention.", "crossattention."};
constexpr Names kBertIgnored = {"attention.output.LayerNorm.weight", "attention.output.LayerNorm.bias",
                                "attention.output.LayerNorm.gamma", "attention.output.LayerNorm.beta"};
constexpr Naming kBert = {.prefixes = kBertPrefixes,
                          .layers = "encoder.layer.",
                          .query = {"attention.self.query"},
                          .key = {"attention.self.key"},
                          .value = {"attention.self.value"},
                          .fused = {},
                          .output = {"attention.output.dense"},
                          .attention = kBertAttention,
                          .ignored = kBertIgnored};

constexpr Names kVitPrefixes = {"", "vit.", "deit."};
constexpr Names kVitAttention = {"attention."};
constexpr Naming kVit = {.prefixes = kVitPrefixes,
                         .layers = "encoder.layer.",
                         .query = {"attention.attention.query", BiasRule::kByConfig},
                         .key = {"attention.attention.key", BiasRule::kByConfig},
                         .value = {"attention.attention.value", BiasRule::kByConfig},
                         .fused = {},
                         .output = {"attention.output.dense"},
                         .attention = kVitAttention,
                         .ignored = {}};

constexpr Names kGpt2Prefixes = {"", "transformer."};
constexpr Names kGpt2Attention = {"attn.", "crossattention."};
constexpr Names kGpt2Ignored = {"attn.bias", "attn.masked_bias"};  // the causal mask, as a buffer
constexpr Naming kGpt2 = {.prefixes = kGpt2Prefixes,
                          .layers = "h.",
                          .query = {},
                          .key = {},
                          .value = {},
                          .fused = {"attn.c_attn"},
                          .output = {"attn.c_proj"},
                          .in_out = true,
                          .attention = kGpt2Attention,
                          .ignored = kGpt2Ignored};

constexpr Names kLlamaPrefixes = {"", "model."};
constexpr Names kLlamaAttention = {"self_attn."};
constexpr Names kLlamaIgnored = {"self_attn.rotary_emb.inv_freq"};  // unscaled, in old files

constexpr Naming LlamaNaming(BiasRule input_bias, BiasRule output_bias) {
  return {.prefixes = kLlamaPrefixes,
          .layers = "layers.",
          .query = {"self_attn.q_proj", input_bias},
          .key = {"self_attn.k_proj", input_bias},
          .value = {"self_attn.v_proj", input_bias},
          .fused = {},
          .output = {"self_attn.o_proj", output_bias},
          .attention = kLlamaAttention,
          .ignored = kLlamaIgnored};
}
constexpr Naming kLlama = LlamaNaming(BiasRule::kByConfig, BiasRule::kByConfig);
constexpr Naming kMistral = LlamaNaming(BiasRule::kNever, BiasRule::kNever);
constexpr Naming kQwen2 = LlamaNaming(BiasRule::kAlways, BiasRule::kNever);

// Fields under which models of these types, or code that calls itself so, compute something else. Refused unless unset,
// false or 0.
constexpr const char* kForeignFields[] = {
    "add_cross_attention", "alibi",   "attention_multiplier", "attn_logit_softcapping", "clip_qkv",  "is_decoder",
    "qk_layernorm",        "qk_norm", "quantization_config",  "query_pre_attn_scalar",  "use_mrope", "use_qk_norm",
};

// As wide as a server's layer may be.
constexpr int64_t kMaxWidth = 65536;

// Sizes of a layer whose heads are all alike, under the names of a family.
LayerText ReadHeads(ConfigReader& config, const std::string& width_field, const std::string& heads_field) {
  for (const char* field : kForeignFields) {
    const nlohmann::json value = config.object().value(field, nlohmann::json());
    const bool is_off = value.is_null() || value == false || value == 0;
    if (!is_off) config.Refuse(field, "is not supported");
  }
  LayerText layer;
  layer.model_dim = config.Size(width_field);
  layer.heads = layer.kv_heads = config.Size(heads_field);
  if (config.Has("head_dim")) {
    layer.head_dim = config.Size("head_dim");
  } else if (layer.model_dim % layer.heads == 0) {
    layer.head_dim = layer.model_dim / layer.heads;
  } else {
    config.Refuse(heads_field, absl::StrCat("must divide ", width_field, " (", layer.model_dim, ")"));
  }
  if (layer.model_dim > kMaxWidth) config.Refuse(width_field, absl::StrCat("must be at most ", kMaxWidth));
  if (layer.heads * layer.head_dim > kMaxWidth) {
    config.Refuse(heads_field,
                  absl::StrCat("times the width of a head (", layer.head_dim, ") must be at most ", kMaxWidth));
  }
  return layer;
}

LayerText ReadBert(ConfigReader& config, int64_t) {
  if (config.Text("position_embedding_type", "absolute") != "absolute") {
    config.Refuse("position_embedding_type", "must be absolute");
  }
  return ReadHeads(config, "hidden_size", "num_attention_heads");
}

LayerText ReadVit(ConfigReader& config, int64_t) { return ReadHeads(config, "hidden_size", "num_attention_heads"); }

LayerText ReadGpt2(ConfigReader& config, int64_t layer_index) {
  LayerText layer = ReadHeads(config, "n_embd", "n_head");
  layer.causal = true;
  const bool by_width = config.Flag("scale_attn_weights", true);
  const bool by_index = config.Flag("scale_attn_by_inverse_layer_idx", false);
  const double scale = (by_width ? 1 / std::sqrt(static_cast<double>(layer.head_dim)) : 1) /
                       (by_index ? static_cast<double>(layer_index + 1) : 1);
  if (!by_width || by_index) layer.scale = static_cast<float>(scale);  // else it is the default
  return layer;
}

// Whether a layer has the sliding window: as layer_types says, where there is such a list.
bool Slides(ConfigReader& config, int64_t layer_index, bool otherwise) {
  if (!config.Has("layer_types")) return otherwise;
  const nlohmann::json& types = config.object()["layer_types"];
  const auto index = static_cast<size_t>(layer_index);
  if (types.is_array() && index < types.size()) {
    if (types[index] == "full_attention") return false;
    if (types[index] == "sliding_attention") return true;
  }
  config.Refuse("layer_types", absl::StrCat("must have full_attention or sliding_attention for layer ", layer_index));
  return otherwise;
}

// What Llama and those that follow it share.
LayerText ReadRotaryDecoder(ConfigReader& config, int64_t layer_index, bool slides) {
  LayerText layer = ReadHeads(config, "hidden_size", "num_attention_heads");
  layer.causal = true;
  layer.kv_heads = config.Size("num_key_value_heads", layer.heads);
  if (layer.heads % layer.kv_heads != 0) {
    config.Refuse("num_key_value_heads", absl::StrCat("must divide num_attention_heads (", layer.heads, ")"));
  }
  if (layer.head_dim <= kMaxWidth) layer.rotary = ReadRotary(config, layer.head_dim);
  // A window of W positions has the query's own among them.
  if (Slides(config, layer_index, slides)) layer.window_left = config.Size("sliding_window") - 1;
  return layer;
}

LayerText ReadLlama(ConfigReader& config, int64_t layer_index) {
  LayerText layer = ReadRotaryDecoder(config, layer_index, /*slides=*/false);
  if (config.Has("sliding_window") && !config.Has("layer_types")) {
    config.Refuse("sliding_window", "means nothing in a llama; in a mistral it does");
  }
  return layer;
}

// Mistral's and Qwen's code have a number of kv heads of their own when the file has none.
void RequireKvHeads(ConfigReader& config) { config.Size("num_key_value_heads"); }

LayerText ReadMistral(ConfigReader& config, int64_t layer_index) {
  RequireKvHeads(config);
  return ReadRotaryDecoder(config, layer_index, config.Has("sliding_window"));
}

// Without layer_types, layers have the window from max_window_layers on.
LayerText ReadQwen2(ConfigReader& config, int64_t layer_index) {
  RequireKvHeads(config);
  const bool any = config.Flag("use_sliding_window", false);
  return ReadRotaryDecoder(config, layer_index, any && layer_index >= config.Size("max_window_layers"));
}

constexpr Family kFamilies[] = {
    {"bert", &kBert, "num_hidden_layers", ReadBert},
    {"camembert", &kBert, "num_hidden_layers", ReadBert},
    {"deit", &kVit, "num_hidden_layers", ReadVit, "qkv_bias", true},
    {"electra", &kBert, "num_hidden_layers", ReadBert},
    {"gpt2", &kGpt2, "n_layer", ReadGpt2},
    {"llama", &kLlama, "num_hidden_layers", ReadLlama, "attention_bias", false},
    {"mistral", &kMistral, "num_hidden_layers", ReadMistral},
    {"qwen2", &kQwen2, "num_hidden_layers", ReadQwen2},
    {"roberta", &kBert, "num_hidden_layers", ReadBert},
    {"vit", &kVit, "num_hidden_layers", ReadVit, "qkv_bias", true},
    {"xlm-roberta", &kBert, "num_hidden_layers", ReadBert},
};

}  // namespace

absl::StatusOr<const Family*> FindFamily(ConfigReader& config) {
  const std::string type = config.Text("model_type");
  for (const Family& family : kFamilies) {
    if (family.model_type == type) return &family;
  }
  const auto name = [](std::string* out, const Family& family) { absl::StrAppend(out, family.model_type); };
  config.Refuse("model_type", absl::StrCat("must be one of ", absl::StrJoin(kFamilies, ", ", name)));
  return config.status();
}

}  // namespace triad::tools
