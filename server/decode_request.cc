#include "server/decode_request.h"

#include "server/decode_fields.h"
#include "server/unknown_fields.h"

namespace triad {
namespace {

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

absl::Status DecodeTensors(const v1::AttendRequest& message, const KeyValuePieces* pieces, AttentionRequest& request) {
  const Pieces* const key = pieces == nullptr ? nullptr : &pieces->key;
  const Pieces* const value = pieces == nullptr ? nullptr : &pieces->value;
  if (absl::Status status =
          DecodeRequiredTensors({{"query", message.has_query(), message.query(), request.query},
                                 {"key", message.has_key(), message.key(), request.key, key},
                                 {"value", message.has_value(), message.value(), request.value, value}});
      !status.ok()) {
    return status;
  }
  return DecodeOptionalTensors({{"keep", message.has_keep(), message.keep(), request.keep},
                                {"bias", message.has_bias(), message.bias(), request.bias}});
}

}  // namespace

absl::StatusOr<DecodedAttend> DecodeAttend(const v1::AttendRequest& message, int64_t max_batch,
                                           const KeyValuePieces* pieces) {
  if (absl::Status status = CheckNothingUnknown(message); !status.ok()) return status;
  DecodedAttend decoded;
  AttentionRequest& request = decoded.request;
  if (absl::Status status = DecodeTensors(message, pieces, request); !status.ok()) return status;
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
  if (absl::Status status =
          DecodeLengths({{"query_lengths", message.has_query_lengths(), message.query_lengths(), request.query_lengths},
                         {"key_lengths", message.has_key_lengths(), message.key_lengths(), request.key_lengths}},
                        max_batch);
      !status.ok()) {
    return status;
  }
  request.return_lse = message.return_lse();
  request.return_weights = message.return_weights();
  decoded.use_reference = message.kernel() == v1::KERNEL_REFERENCE;
  decoded.priority = DecodePriority(message.priority());
  return decoded;
}

}  // namespace triad
