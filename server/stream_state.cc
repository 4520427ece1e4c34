#include "server/stream_state.h"

#include <google/protobuf/duration.pb.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/refuse.h"

namespace triad {

StreamAction NextAction(const StreamState& state, int64_t max_items) {
  if (state.is_finished) return StreamAction::kNone;
  if (state.ready > 0 && !state.is_writing && !state.is_broken) return StreamAction::kWrite;
  const bool input_ended = state.is_half_closed || state.is_broken;
  if ((input_ended || state.is_draining) && state.unanswered == 0 && !state.is_taking && !state.is_writing) {
    return StreamAction::kFinish;
  }
  if (!input_ended && !state.is_reading && !state.is_taking && state.unanswered < max_items) return StreamAction::kRead;
  return StreamAction::kNone;
}

absl::Status FinalStatus(const StreamState& state) {
  if (state.is_broken) return absl::CancelledError("the client went away");
  if (state.is_unreadable) return absl::InvalidArgumentError("a frame of the stream is not a message of its type");
  if (state.is_half_closed) return absl::OkStatus();
  return DrainingError();
}

absl::StatusOr<Time> ItemDeadline(const google::protobuf::Duration* timeout, Time stream_deadline, Time now) {
  if (timeout == nullptr) return stream_deadline;
  const int64_t seconds = timeout->seconds();
  const int32_t nanos = timeout->nanos();
  if (seconds < 0 || nanos < 0 || nanos > 999'999'999 || (seconds == 0 && nanos == 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("timeout must be > 0 with nanos of 0 to 999999999; was ", seconds, " s and ", nanos, " ns"));
  }
  constexpr auto kLongest = std::chrono::seconds(std::chrono::hours(24 * 365));  // past it: none
  if (seconds >= kLongest.count()) return stream_deadline;
  return std::min(stream_deadline, now + std::chrono::seconds(seconds) + std::chrono::nanoseconds(nanos));
}

}  // namespace triad
