#include "server/decode_request.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/unknown_fields.h"

namespace triad {
namespace {

// No tensor of the contract has more. Checked before a shape is copied, because a client may send one of a million
// dimensions.
constexpr int kMaxRank = 4;

absl::Status Refuse(absl::string_view field, absl::string_view rule, const absl::AlphaNum& was) {
  return absl::InvalidArgumentError(absl::StrCat(field, " must ", rule, "; was ", was));
}

std::optional<DType> DecodeDType(v1::DataType dtype) {
  switch (dtype) {
    case v1::FLOAT32:
      return DType::kF32;
    case v1::BFLOAT16:
      return DType::kBf16;
    case v1::FLOAT16:
      return DType::kF16;
    case v1::BOOL:
      return DType::kBool;
    default:
      return std::nullopt;
  }
}

Layout DecodeLayout(v1::Layout layout) {
  switch (layout) {
    case v1::HEADS_TOKENS:
      return Layout::kHeadsTokens;
    case v1::PACKED:
      return Layout::kPacked;
    default:
      return Layout::kTokensHeads;
  }
}

Alignment DecodeAlignment(v1::Alignment alignment) {
  switch (alignment) {
    case v1::TOP_LEFT:
      return Alignment::kTopLeft;
    case v1::BOTTOM_RIGHT:
      return Alignment::kBottomRight;
    default:
      return Alignment::kUnspecified;
  }
}

absl::Status DecodeTensorInto(absl::string_view field, const v1::Tensor& message, TensorView& view) {
  absl::StatusOr<TensorView> decoded = DecodeTensor(field, message);
  if (!decoded.ok()) return decoded.status();
  view = *std::move(decoded);
  return absl::OkStatus();
}

absl::Status DecodeTensors(const v1::AttendRequest& message, AttentionRequest& request) {
  struct Required {
    absl::string_view field;
    bool given;
    const v1::Tensor& tensor;
    TensorView& view;
  };
  for (const Required& r : {Required{"query", message.has_query(), message.query(), request.query},
                            {"key", message.has_key(), message.key(), request.key},
                            {"value", message.has_value(), message.value(), request.value}}) {
    if (!r.given) return Refuse(r.field, "be given", "unset");
    if (absl::Status status = DecodeTensorInto(r.field, r.tensor, r.view); !status.ok()) return status;
  }
  if (message.has_keep()) {
    if (absl::Status status = DecodeTensorInto("keep", message.keep(), request.keep.emplace()); !status.ok())
      return status;
  }
  if (message.has_bias()) return DecodeTensorInto("bias", message.bias(), request.bias.emplace());
  return absl::OkStatus();
}

absl::Status DecodeLengths(absl::string_view field, const v1::Lengths& message, int64_t max_batch,
                           std::optional<std::vector<int64_t>>& lengths) {
  if (message.values_size() > max_batch) {
    return Refuse(field, absl::StrCat("have at most --max_batch = ", max_batch, " entries"), message.values_size());
  }
  lengths.emplace(message.values().begin(), message.values().end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TensorView> DecodeTensor(absl::string_view field, const v1::Tensor& message) {
  const std::optional<DType> dtype = DecodeDType(message.dtype());
  if (!dtype) return Refuse(absl::StrCat(field, ".dtype"), "be named", v1::DataType_Name(message.dtype()));
  if (message.shape_size() > kMaxRank) {
    return Refuse(absl::StrCat(field, ".shape"), absl::StrCat("have at most ", kMaxRank, " dimensions"),
                  message.shape_size());
  }
  TensorView view{.data = reinterpret_cast<const std::byte*>(message.data().data()),
                  .dtype = *dtype,
                  .shape = Shape(message.shape().begin(), message.shape().end())};
  const std::optional<int64_t> bytes = TensorBytes(view.dtype, view.shape);
  if (!bytes) {
    return Refuse(absl::StrCat(field, ".shape"), "have no negative dimension and fewer than 2^63 bytes",
                  ToString(view.shape));
  }
  if (*bytes != static_cast<int64_t>(message.data().size())) {
    return Refuse(absl::StrCat(field, ".data"),
                  absl::StrCat("have the ", *bytes, " bytes of ", Name(view.dtype), " ", ToString(view.shape)),
                  absl::StrCat(message.data().size(), " bytes"));
  }
  return view;
}

absl::StatusOr<DecodedAttend> DecodeAttend(const v1::AttendRequest& message, int64_t max_batch) {
  if (absl::Status status = CheckNothingUnknown(message); !status.ok()) return status;
  DecodedAttend decoded;
  AttentionRequest& request = decoded.request;
  if (absl::Status status = DecodeTensors(message, request); !status.ok()) return status;
  request.layout = DecodeLayout(message.layout());
  if (message.has_scale()) request.scale = message.scale();
  request.logit_softcap = message.logit_softcap();
  request.causal = message.causal();
  request.alignment = DecodeAlignment(message.alignment());
  if (message.has_window()) {
    Window& window = request.window.emplace();
    if (message.window().has_left()) window.left = message.window().left();
    if (message.window().has_right()) window.right = message.window().right();
  }
  request.alibi_slopes.assign(message.alibi_slopes().begin(), message.alibi_slopes().end());
  request.alibi = message.alibi();
  request.sinks.assign(message.sinks().begin(), message.sinks().end());
  for (const auto& [field, given, lengths, target] :
       {std::tuple<absl::string_view, bool, const v1::Lengths&, std::optional<std::vector<int64_t>>&>{
            "query_lengths", message.has_query_lengths(), message.query_lengths(), request.query_lengths},
        {"key_lengths", message.has_key_lengths(), message.key_lengths(), request.key_lengths}}) {
    if (!given) continue;
    if (absl::Status status = DecodeLengths(field, lengths, max_batch, target); !status.ok()) return status;
  }
  request.return_lse = message.return_lse();
  request.return_weights = message.return_weights();
  decoded.use_reference = message.kernel() == v1::KERNEL_REFERENCE;
  decoded.priority = message.priority() == v1::LOW ? Priority::kLow : Priority::kNormal;
  return decoded;
}

}  // namespace triad
