// From the wire's AttendRequest to the core's, without copying a payload.
#pragma once

#include "absl/status/statusor.h"
#include "core/attention/attention_request.h"
#include "core/batching/task.h"
#include "server/key_value_pieces.h"
#include "triad/v1/attention.pb.h"

namespace triad {

struct DecodedAttend {
  AttentionRequest request;  // borrows the message's bytes
  bool use_reference = false;
  Priority priority = Priority::kNormal;
};

// The result borrows `message`, which must outlive it and stay unchanged. Cost: O(lengths, slopes and sinks), none of
// it in payload bytes. UNIMPLEMENTED: a field or enum value is unknown (CheckNothingUnknown). INVALID_ARGUMENT: a
// tensor is missing, does not name its type, or its data is not the bytes of its shape; or there are more lengths than
// `max_batch`. What the values mean together is for ValidateAttention.
//
// `pieces`, where not null, has the keys and values that `message` has not, and is borrowed too.
absl::StatusOr<DecodedAttend> DecodeAttend(const v1::AttendRequest& message, int64_t max_batch,
                                           const KeyValuePieces* pieces = nullptr);

}  // namespace triad
