// What can be known to be wrong with a request before it is sent. Everything else is the server's to judge. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/src/request_sizes.h"
#include "triad/attend.h"
#include "triad/forward.h"
#include "triad/server_info.h"

namespace triad::client {

// That `tensor` has exactly the bytes of its shape. `field` names it in the message.
absl::Status CheckTensor(absl::string_view field, const TensorView& tensor);

// CheckTensor of all tensors in `request`.
absl::Status CheckTensors(const AttendRequest& request);
absl::Status CheckTensors(const ForwardRequest& request);

// That a message of `bytes` and its answer are no longer than this client allows. `sizes` are those of the request.
absl::Status CheckOwnLimit(int64_t bytes, const RequestSizes& sizes, int64_t max_message_bytes);

// That a request of `sizes`, which takes `bytes` on the wire, is within the limits of the server at `target`. Limits of
// 0 are unknown and not looked at.
absl::Status CheckServerLimits(const RequestSizes& sizes, int64_t bytes, const Limits& limits,
                               const std::string& target);

}  // namespace triad::client
