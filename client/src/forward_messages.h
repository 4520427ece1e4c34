// Between the client's structs for hosted layers and the wire's messages. As attend_messages.h.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "client/src/message_parts.h"
#include "triad/forward.h"
#include "triad/layers.h"
#include "triad/v1/attention.pb.h"
#include "triad/v1/layer.pb.h"

namespace triad::client {

MessageParts Encode(const ForwardRequest& request);
absl::StatusOr<ForwardResponse> Decode(v1::ForwardResponse&& message);

Layer Decode(const v1::Layer& message);
std::vector<Layer> Decode(const v1::ListLayersResponse& message);

}  // namespace triad::client
