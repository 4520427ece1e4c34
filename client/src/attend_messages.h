// Between the client's structs and the wire's messages.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "triad/attend.h"
#include "triad/server_info.h"
#include "triad/v1/attention.pb.h"

namespace triad::client {

// Fills `message`, which is empty. Copies the tensors' bytes: the one copy that a request costs here.
void Encode(const AttendRequest& request, v1::AttendRequest& message);

// Exactly the bytes that Encode's message serialises to, without copying a tensor.
int64_t EncodedBytes(const AttendRequest& request);

// Moves the bytes out of `message`. INTERNAL: a tensor in it is malformed.
absl::StatusOr<AttendResponse> Decode(v1::AttendResponse&& message);

ServerInfo Decode(const v1::ServerInfo& message);

}  // namespace triad::client
