// Many requests over one stream: of attention (AttendStream), or for hosted layers (ForwardStream).
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "triad/attend.h"
#include "triad/forward.h"
#include "triad/options.h"

namespace triad::client {

// The answer to one item, or why there is none; codes as the call of one request returns them. RetryPushback() reads
// when the server wants a RESOURCE_EXHAUSTED item again: a stream does not retry by itself.
template <class Response>
struct StreamAnswer {
  uint64_t request_id = 0;
  absl::StatusOr<Response> response;
};

// A stream that is open. Answers come as items finish, in any order; an item that is refused fails alone.
//
// Threads: Send, Cancel and HalfClose from any thread; Next and Finish from one thread at a time, which may be another.
//
// Flow: Send blocks while the transport is full: once Limits::max_stream_items are in flight the server stops reading
// until an answer has been taken. Whoever sends and reads on one thread keeps fewer than that in flight. Before it
// refuses an item for the server's limits it may ask for them, by a call of its own, and fails as that does.
//
// End: HalfClose, then Next until it returns nullopt, then Finish. Destroying the stream earlier cancels it; no
// function of the stream may be running then.
template <class RequestType, class ResponseType>
class RequestStream {
 public:
  using Request = RequestType;
  using Response = ResponseType;
  using Answer = StreamAnswer<Response>;

  virtual ~RequestStream() = default;

  // Sends one item under a name of the caller's, unique among the items that are in flight. Tensors without
  // an owner are copied; nothing is borrowed once Send returns.
  // INVALID_ARGUMENT: the request, or an id that is in flight; nothing was sent. FAILED_PRECONDITION: after HalfClose.
  // UNAVAILABLE: the stream has ended; Finish says why.
  virtual absl::Status Send(uint64_t request_id, const Request& request, const ItemOptions& options) = 0;
  absl::Status Send(uint64_t request_id, const Request& request) { return Send(request_id, request, {}); }

  // Abandons an item. It is answered CANCELLED, unless it had finished. An id that is not in flight: OK, nothing
  // happens. FAILED_PRECONDITION and UNAVAILABLE as for Send.
  virtual absl::Status Cancel(uint64_t request_id) = 0;

  // Says that no more items come; the server answers what it has. Again: OK, nothing happens.
  virtual absl::Status HalfClose() = 0;

  // Waits for the next answer. nullopt: there are no more, now or later; call Finish.
  virtual std::optional<Answer> Next() = 0;

  // How the stream ended: OK when everything was answered after HalfClose. Takes, and throws away, answers that Next
  // has not; half-closes if need be. Once finished, returns the same again.
  virtual absl::Status Finish() = 0;
};

using AttendStream = RequestStream<AttendRequest, AttendResponse>;
using AttendAnswer = AttendStream::Answer;

using ForwardStream = RequestStream<ForwardRequest, ForwardResponse>;
using ForwardAnswer = ForwardStream::Answer;

}  // namespace triad::client
