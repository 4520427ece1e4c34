#include "core/layer/layer_spec_text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/attention/refuse.h"
#include "triad/v1/layer_spec.pb.h"

namespace triad {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 20;
constexpr int kMaxDepth = 8;  // the messages of the spec nest two deep

// Keeps the first error; without it, protobuf would write them to stderr.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

absl::StatusOr<v1::LayerSpec> ParseMessage(absl::string_view text) {
  if (text.size() > kMaxTextBytes) {
    return Refuse("the text", absl::StrCat("have at most ", kMaxTextBytes, " bytes"), text.size());
  }
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxDepth);
  v1::LayerSpec message;
  if (!parser.ParseFromString(std::string(text), &message)) {
    return absl::InvalidArgumentError(error.text().empty() ? "not a LayerSpec in protobuf's text format"
                                                           : error.text());
  }
  return message;
}

// -- Enums. Their numbers may be any: text may give one that has no name. ---------------------------------------------

absl::Status DecodeEnums(const v1::LayerSpec& message, LayerSpec& spec) {
  switch (message.compute()) {
    case v1::DATA_TYPE_UNSPECIFIED:
    case v1::FLOAT32:
      spec.compute = DType::kF32;
      break;
    case v1::BFLOAT16:
      spec.compute = DType::kBf16;
      break;
    default:
      return Refuse("compute", "be FLOAT32 or BFLOAT16", static_cast<int>(message.compute()));
  }
  switch (message.alignment()) {
    case v1::ALIGNMENT_UNSPECIFIED:
      spec.alignment = spec.is_cross() ? Alignment::kUnspecified : Alignment::kTopLeft;
      break;
    case v1::TOP_LEFT:
      spec.alignment = Alignment::kTopLeft;
      break;
    case v1::BOTTOM_RIGHT:
      spec.alignment = Alignment::kBottomRight;
      break;
    default:
      return Refuse("alignment", "be TOP_LEFT or BOTTOM_RIGHT", static_cast<int>(message.alignment()));
  }
  switch (message.weight_order()) {
    case v1::WEIGHT_ORDER_UNSPECIFIED:
    case v1::OUT_IN:
      spec.weight_order = WeightOrder::kOutIn;
      break;
    case v1::IN_OUT:
      spec.weight_order = WeightOrder::kInOut;
      break;
    default:
      return Refuse("weight_order", "be OUT_IN or IN_OUT", static_cast<int>(message.weight_order()));
  }
  return absl::OkStatus();
}

// -- Fields ----------------------------------------------------------------------------------------------------------

absl::Status DecodeSizes(const v1::LayerSpec& message, LayerSpec& spec) {
  spec.model_dim = message.model_dim();
  spec.context_dim = message.context_dim();
  spec.output_dim = message.has_output_dim() ? message.output_dim() : message.model_dim();
  spec.heads = message.heads();
  spec.kv_heads = message.has_kv_heads() ? message.kv_heads() : message.heads();
  if (spec.model_dim < 1) return Refuse("model_dim", "be >= 1", spec.model_dim);
  if (spec.heads < 1) return Refuse("heads", "be >= 1", spec.heads);
  if (!message.has_qk_head_dim() && spec.model_dim % spec.heads != 0) {
    return Refuse("qk_head_dim",
                  absl::StrCat("be given when heads (", spec.heads, ") do not divide model_dim (", spec.model_dim, ")"),
                  "unset");
  }
  spec.qk_head_dim = message.has_qk_head_dim() ? message.qk_head_dim() : spec.model_dim / spec.heads;
  spec.v_head_dim = message.has_v_head_dim() ? message.v_head_dim() : spec.qk_head_dim;
  return absl::OkStatus();
}

void DecodeScores(const v1::LayerSpec& message, LayerSpec& spec) {
  if (message.has_scale()) spec.scale = message.scale();
  spec.logit_softcap = message.logit_softcap();
  spec.causal = message.causal();
  if (message.has_window()) {
    Window& window = spec.window.emplace();
    if (message.window().has_left()) window.left = message.window().left();
    if (message.window().has_right()) window.right = message.window().right();
  }
  spec.alibi_slopes.assign(message.alibi_slopes().begin(), message.alibi_slopes().end());
  spec.alibi = message.alibi();
  spec.sinks.assign(message.sinks().begin(), message.sinks().end());
}

absl::Status DecodeRotary(const v1::LayerSpec& message, LayerSpec& spec) {
  if (!message.has_rotary()) return absl::OkStatus();
  const v1::RotarySpec& rotary = message.rotary();
  // In LayerSpec, 0 says that there is none.
  if (rotary.dim() < 1) return Refuse("rotary.dim", "be even and > 0", rotary.dim());
  if (rotary.has_theta() && !rotary.inverse_frequencies().empty()) {
    return Refuse("rotary.theta", "be unset when inverse_frequencies are given", rotary.theta());
  }
  switch (rotary.pairs()) {
    case v1::ROTARY_PAIRS_UNSPECIFIED:
    case v1::HALVES:
      spec.rotary.pairs = RotaryPairs::kHalves;
      break;
    case v1::NEIGHBOURS:
      spec.rotary.pairs = RotaryPairs::kNeighbours;
      break;
    default:
      return Refuse("rotary.pairs", "be HALVES or NEIGHBOURS", static_cast<int>(rotary.pairs()));
  }
  spec.rotary.dim = rotary.dim();
  if (rotary.has_theta()) spec.rotary.theta = rotary.theta();
  spec.rotary.inverse_frequencies.assign(rotary.inverse_frequencies().begin(), rotary.inverse_frequencies().end());
  if (rotary.has_attention_factor()) spec.rotary.attention_factor = rotary.attention_factor();
  return absl::OkStatus();
}

absl::Status DecodeNames(const v1::LayerSpec& message, LayerSpec& spec) {
  // Answers without a norm that the model was trained with would be wrong, and look right.
  for (const auto& [field, name, of] : {std::tuple<absl::string_view, const std::string&, absl::string_view>{
                                            "query_norm", message.query_norm(), "queries"},
                                        {"key_norm", message.key_norm(), "keys"}}) {
    if (name.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(field, ": per-head normalisation of ", of,
                                                   " is not computed, so a layer that needs it is refused"));
  }
  if (message.has_fused() && message.fused().weight().empty()) return Refuse("fused.weight", "be named", "empty");
  const auto decode = [](const v1::ProjectionSpec& names) {
    return ProjectionNames{.weight = names.weight(), .bias = names.bias()};
  };
  spec.query = decode(message.query());
  spec.key = decode(message.key());
  spec.value = decode(message.value());
  spec.fused = decode(message.fused());
  spec.output = decode(message.output());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LayerSpec> ParseLayerSpec(absl::string_view text) {
  absl::StatusOr<v1::LayerSpec> message = ParseMessage(text);
  if (!message.ok()) return message.status();
  LayerSpec spec;
  absl::Status status = DecodeSizes(*message, spec);
  if (status.ok()) status = DecodeEnums(*message, spec);
  if (status.ok()) status = DecodeRotary(*message, spec);
  if (status.ok()) status = DecodeNames(*message, spec);
  if (!status.ok()) return status;
  DecodeScores(*message, spec);
  if (status = ValidateLayerSpec(spec); !status.ok()) return status;
  return spec;
}

}  // namespace triad
