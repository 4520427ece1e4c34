// What can be known to be wrong with a request before it is sent. Everything else is the server's to judge. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "triad/attend.h"
#include "triad/server_info.h"

namespace triad::client {

// That `tensor` has exactly the bytes of its shape. `field` names it in the message.
absl::Status CheckTensor(absl::string_view field, const TensorView& tensor);

// CheckTensor of all tensors in `request`.
absl::Status CheckTensors(const AttendRequest& request);

// That a message of `bytes` is no longer than this client allows.
absl::Status CheckOwnLimit(int64_t bytes, int64_t max_message_bytes);

// That `request`, which passed CheckTensors and takes `bytes` on the wire, is within the limits of the server at
// `target`. Sizes are looked at only where the tensors have the rank of the layout; limits of 0 are unknown and not
// looked at.
absl::Status CheckServerLimits(const AttendRequest& request, int64_t bytes, const Limits& limits,
                               const std::string& target);

}  // namespace triad::client
