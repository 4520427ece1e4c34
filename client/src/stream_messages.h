// Items and answers of either stream: an envelope around the messages of one request.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/src/attend_messages.h"
#include "client/src/forward_messages.h"
#include "client/src/tensor_messages.h"
#include "triad/stream.h"

namespace triad::client {

// A `Message`, v1.AttendStreamRequest or v1.ForwardStreamRequest. Borrows as Encode. `timeout` > 0; infinite: none is
// sent.
template <class Message, class Request>
MessageParts EncodeItem(uint64_t request_id, const Request& request, absl::Duration timeout) {
  Message envelope;
  envelope.set_request_id(request_id);
  if (timeout != absl::InfiniteDuration()) {
    absl::Duration rest;
    envelope.mutable_timeout()->set_seconds(absl::IDivDuration(timeout, absl::Seconds(1), &rest));
    envelope.mutable_timeout()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  }
  MessageParts parts = Encode(request);
  parts.WrapIn(envelope, Message::kRequestFieldNumber);
  return parts;
}

// Bytes that an item has around its request at most: id (11), field and length of the request (11), timeout (2 + 18).
inline constexpr int64_t kStreamItemBytes = 42;

// `Answer` is AttendAnswer or ForwardAnswer, `Message` its message.
template <class Answer, class Message>
Answer DecodeAnswer(Message&& message) {
  const uint64_t id = message.request_id();
  switch (message.result_case()) {
    case Message::kResponse:
      return {id, Decode(std::move(*message.mutable_response()))};
    case Message::kError:
      return {id, DecodeError(message.error())};
    case Message::RESULT_NOT_SET:
      break;
  }
  return {id, absl::InternalError("malformed answer: neither response nor error")};
}

}  // namespace triad::client
