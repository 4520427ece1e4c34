#include "server/serving_context.h"

#include <utility>

namespace triad {

absl::Status CheckOpen(ServingContext& context) {
  absl::Status status = context.ledger.CheckOpen();
  if (!status.ok()) context.metrics.OnRefused(Refusal::kDraining);
  return status;
}

absl::StatusOr<TaskId> AdmitTask(std::unique_ptr<Task> task, absl::string_view peer, ServingContext& context,
                                 InFlightLedger::Hold& hold) {
  InFlightLedger::Answer answer = context.ledger.Acquire({.bytes = task->cost().bytes, .peer = peer});
  // Refusals of the scheduler reach the metrics by themselves.
  if (answer.refusal) context.metrics.OnRefused(*answer.refusal);
  if (!answer.status.ok()) return std::move(answer.status);
  hold = std::move(answer.hold);  // before the task can finish, because finishing may end `hold`
  return context.scheduler.Submit(task);
}

}  // namespace triad
