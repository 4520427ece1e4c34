#include "server/decode_forward.h"

#include "server/decode_fields.h"
#include "server/layer_name.h"
#include "server/unknown_fields.h"

namespace triad {

absl::StatusOr<DecodedForward> DecodeForward(const v1::ForwardRequest& message, int64_t max_batch) {
  if (absl::Status status = CheckNothingUnknown(message); !status.ok()) return status;
  DecodedForward decoded;
  decoded.layer = message.layer();
  if (message.has_version()) decoded.version = message.version();
  absl::Status status = CheckLayerName("layer", decoded.layer);
  if (status.ok()) status = CheckLayerVersion("version", decoded.version);
  ForwardRequest& request = decoded.request;
  if (status.ok()) {
    status = DecodeRequiredTensors({{"input", message.has_input(), message.input(), request.input}});
  }
  if (status.ok()) {
    status = DecodeOptionalTensors({{"context", message.has_context(), message.context(), request.context},
                                    {"keep", message.has_keep(), message.keep(), request.keep},
                                    {"bias", message.has_bias(), message.bias(), request.bias}});
  }
  if (status.ok()) {
    status = DecodeLengths(
        {{"lengths", message.has_lengths(), message.lengths(), request.lengths},
         {"context_lengths", message.has_context_lengths(), message.context_lengths(), request.context_lengths},
         {"position_offsets", message.has_position_offsets(), message.position_offsets(), request.position_offsets}},
        max_batch);
  }
  if (!status.ok()) return status;
  request.layout = DecodeLayout(message.layout());
  request.return_lse = message.return_lse();
  request.return_weights = message.return_weights();
  decoded.priority = DecodePriority(message.priority());
  return decoded;
}

}  // namespace triad
