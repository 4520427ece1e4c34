// One run: requests go out in a closed or an open loop, and what comes back is measured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stop_token>
#include <vector>

#include "client/tools/bench/answer_sample.h"
#include "client/tools/bench/request_sender.h"
#include "client/tools/bench/request_stream.h"
#include "client/tools/bench/run_recorder.h"
#include "client/tools/bench/trace_file.h"
#include "core/base/clock.h"

namespace triad::tools {

// A way to a server.
struct Route {
  RequestSender* sender = nullptr;  // borrowed
  size_t target = 0;                // index of the server
};

struct LoadPlan {
  RequestStream requests = {};
  int64_t max_requests = std::numeric_limits<int64_t>::max();  // sending ends after so many

  // Closed loop: so many requests are kept in flight, until `duration` has passed. 0: an open loop.
  int64_t concurrency = 0;
  // Open loop: requests go out when they are due, whatever has been answered, until the due times end.
  DueTimes due_times = {};
  // A due request is dropped while so many are in flight: memory is bounded where a server has stalled.
  int64_t max_in_flight = 1024;

  std::optional<Duration> duration = {};  // of the sending; unset: an open loop's due times say
  std::stop_token stop = {};              // ends the sending early; what is in flight is the senders' to cancel
};

// What a run acts on. All are borrowed and outlive it; `trace` may be null.
struct LoadTools {
  std::vector<Route> routes;  // not empty; lanes of a closed loop, or requests of an open one, take turns
  RunRecorder& recorder;
  AnswerSample& sample;
  TraceWriter* trace = nullptr;
  Clock& clock;
};

// Starts at recorder.start(), sends, and returns when all that was sent is answered. An open loop is driven by the
// calling thread; a closed one by the threads that bring the answers. A lane of a closed loop whose sender takes no
// more (its stream has broken) ends. So does the sending once all is refused for good.
RunEnd RunLoad(LoadPlan plan, const LoadTools& tools);

}  // namespace triad::tools
