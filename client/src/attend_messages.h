// Between the client's structs and the wire's messages.
#pragma once

#include "absl/status/statusor.h"
#include "client/src/message_parts.h"
#include "triad/attend.h"
#include "triad/server_info.h"
#include "triad/v1/attention.pb.h"

namespace triad::client {

// A v1.AttendRequest. Borrows the views in `request`; copies no tensor.
MessageParts Encode(const AttendRequest& request);

// Moves the bytes out of `message`. INTERNAL: a tensor in it is malformed.
absl::StatusOr<AttendResponse> Decode(v1::AttendResponse&& message);

ServerInfo Decode(const v1::ServerInfo& message);

}  // namespace triad::client
