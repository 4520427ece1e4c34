// From the wire's ForwardRequest to the core's, without copying a payload.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/batching/task.h"
#include "core/layer/forward_problem.h"
#include "triad/v1/attention.pb.h"

namespace triad {

struct DecodedForward {
  absl::string_view layer;         // borrowed from the message
  std::optional<int64_t> version;  // > 0; unset: the highest that is loaded
  ForwardRequest request;          // borrows the message's bytes
  Priority priority = Priority::kNormal;
};

// The result borrows `message`, which must outlive it and stay unchanged. Cost: O(lengths), none of it in payload
// bytes. UNIMPLEMENTED: a field or enum value is unknown (CheckNothingUnknown). INVALID_ARGUMENT: layer is no layer's
// name, the version is not > 0, input is missing, a tensor does not name its type or its data is not the bytes of its
// shape, or there are more lengths than `max_batch`. What the values mean together is for ValidateForward.
absl::StatusOr<DecodedForward> DecodeForward(const v1::ForwardRequest& message, int64_t max_batch);

}  // namespace triad
