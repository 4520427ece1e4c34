#include "server/serving_context.h"

#include <utility>

namespace triad {

absl::Status CheckOpen(ServingContext& context) { return CountRefusal(context.ledger.CheckOpen(), context.metrics); }

absl::StatusOr<TaskId> AdmitTask(std::unique_ptr<Task> task, ServingContext& context, InFlightLedger::Hold& hold) {
  absl::StatusOr<InFlightLedger::Hold> acquired = context.ledger.Acquire(task->cost().bytes);
  if (!acquired.ok()) return CountRefusal(acquired.status(), context.metrics);
  hold = *std::move(acquired);  // before the task can finish, because finishing may end `hold`
  return context.scheduler.Submit(task);
}

absl::Status CountRefusal(absl::Status status, Metrics& metrics) {
  if (absl::IsUnavailable(status)) metrics.OnRefused(Refusal::kDraining);
  if (absl::IsResourceExhausted(status)) metrics.OnRefused(Refusal::kBytes);
  return status;
}

}  // namespace triad
