// What every call borrows from the server, and the one way in for work.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/batching/scheduler.h"
#include "server/attend_task.h"
#include "server/forward_task.h"
#include "server/held_bytes.h"
#include "server/in_flight_ledger.h"
#include "server/layer_loader.h"
#include "server/layer_store.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/stream_registry.h"

namespace triad {

// Outlives every call. All members are thread-safe or constant.
struct ServingContext {
  AttendKernels kernels;
  Scheduler& scheduler;
  InFlightLedger& ledger;
  HeldBytes& held_bytes;
  StreamRegistry& streams;
  Metrics& metrics;
  Clock& clock;
  LayerStore& layers;
  LayerLoader& loader;
  Log& log;
  int64_t max_stream_items = 1;    // unanswered items at which a stream is read no further
  bool allow_layer_admin = false;  // LoadLayer and UnloadLayer
};

// OK, or UNAVAILABLE once the server drains: asked before anything is decoded.
absl::Status CheckOpen(ServingContext& context);

// Takes the `task` of `peer` (PeerName) in: its share of the bounds into `hold`, then the task to the scheduler. On OK
// its Finish will be called once, or has been already (id 0: it was small and ran here). Otherwise it has not been and
// will not be; codes as InFlightLedger::Acquire and Scheduler::Submit have them. Never blocks.
//
// max_in_flight_bytes is obeyed twice. The ledger's count is the stricter one: it keeps a request until its reply has
// left, the scheduler only until it is computed. So the scheduler's own check never refuses what comes this way; it is
// there for those who use a scheduler without a ledger.
absl::StatusOr<TaskId> AdmitTask(std::unique_ptr<Task> task, absl::string_view peer, ServingContext& context,
                                 InFlightLedger::Hold& hold);

}  // namespace triad
