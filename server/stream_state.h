// What a stream of items does next: the rules of AttendStream and ForwardStream as values, apart from gRPC and threads.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"

namespace google::protobuf {
class Duration;
}

namespace triad {

struct StreamState {
  int64_t unanswered = 0;       // items taken whose reply has not left; queued, computing, waiting or being written
  int64_t ready = 0;            // of those: replies that wait to be written
  bool is_reading = false;      // a read is with gRPC
  bool is_taking = false;       // a frame was read and is being looked at
  bool is_writing = false;      // a write is with gRPC
  bool is_half_closed = false;  // the client sends no more
  bool is_unreadable = false;   // it sent a frame that is no message; nothing after it can be trusted
  bool is_broken = false;       // the client is gone: replies have nowhere to go
  bool is_draining = false;     // the server is
  bool is_finished = false;     // the status has been sent
};

enum class StreamAction { kNone, kRead, kWrite, kFinish };

// Replies go first; a stream ends when nothing more can come and everything is answered; at `max_items` unanswered it
// is read no further. While the server drains, reading goes on as long as items are unanswered, so that the client's
// cancels and its half-close are heard.
StreamAction NextAction(const StreamState& state, int64_t max_items);

// The status a stream ends with. OK only when the client half-closed and everything was answered.
absl::Status FinalStatus(const StreamState& state);

// When an item that arrived at `now` must be done: after `timeout` (null: none given), and never later than the stream.
// INVALID_ARGUMENT: the timeout is not > 0.
absl::StatusOr<Time> ItemDeadline(const google::protobuf::Duration* timeout, Time stream_deadline, Time now);

}  // namespace triad
