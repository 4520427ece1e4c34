// One request that has arrived, unary or item of a stream, and where its answer goes: what tasks are made of.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/batching/task.h"
#include "server/key_value_pieces.h"
#include "server/metrics.h"

namespace triad {

struct ServingContext;

// Told once that the task is over: OK, and the response is complete; or not, and response and effort are to be ignored.
// It may end what the task borrowed, because the task touches none of it afterwards.
using JobDone = std::function<void(absl::Status, const ComputedRequest&)>;

template <class Request, class Response>
struct Job {
  const Request& request;  // borrowed, unchanged until done
  Response& response;      // borrowed, empty; written by the task until done
  // Of an AttendRequest: the keys and values that are not in `request`, if some are not.
  std::unique_ptr<KeyValuePieces> pieces;
  Time received;  // when the whole message was here
  Time deadline = kNever;
  JobDone done;
};

// Decodes, validates and plans; copies no payload. The statuses are those that the request is to be refused with.
// Throws nothing.
template <class Request, class Response>
using MakeTask = absl::StatusOr<std::unique_ptr<Task>> (*)(Job<Request, Response>, ServingContext&);

}  // namespace triad
