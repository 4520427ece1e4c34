#include "core/batching/admission_policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace triad {
namespace {

int64_t Milliseconds(Duration duration) { return std::chrono::round<std::chrono::milliseconds>(duration).count(); }

AdmissionDecision Refuse(Refusal refusal, absl::Status status) {
  return {.status = std::move(status), .refusal = refusal};
}

}  // namespace

AdmissionDecision Admit(const InFlight& in_flight, bool is_draining, int64_t bytes, Time deadline, Time now,
                        const SchedulerOptions& options) {
  TRIAD_CHECK(bytes >= 0, "a task's bytes are counted");
  if (is_draining) return Refuse(Refusal::kDraining, EarlyEnd(Refusal::kDraining, options));
  if (bytes > options.max_in_flight_bytes) {
    return {.status = absl::InvalidArgumentError(absl::StrCat("request and reply must be at most max_in_flight_bytes (",
                                                              options.max_in_flight_bytes, "); were ", bytes)),
            .refusal = std::nullopt};
  }
  if (deadline <= now) return Refuse(Refusal::kDeadline, EarlyEnd(Refusal::kDeadline, options));
  if (in_flight.tasks >= options.max_in_flight_requests) {
    return Refuse(Refusal::kTasks, absl::ResourceExhaustedError(
                                       absl::StrCat(in_flight.tasks, " requests in flight, max_in_flight_requests is ",
                                                    options.max_in_flight_requests)));
  }
  if (bytes > options.max_in_flight_bytes - in_flight.bytes) {
    return Refuse(Refusal::kBytes, absl::ResourceExhaustedError(absl::StrCat(in_flight.bytes, " bytes in flight and ",
                                                                             bytes, " more, max_in_flight_bytes is ",
                                                                             options.max_in_flight_bytes)));
  }
  return {};
}

AdmissionDecision AdmitInTime(const FinishEstimate& estimate, Duration left) {
  if (estimate.least > left) {
    return Refuse(Refusal::kWouldBeLate,
                  absl::DeadlineExceededError(absl::StrCat(
                      "an idle server would need at least ", Milliseconds(estimate.least), " ms, and ",
                      Milliseconds(left), " ms are left until the deadline: ask for less, or allow more time")));
  }
  const Duration answered = estimate.least + estimate.queued + AnswerReserve(left);
  if (estimate.queued > Duration::zero() && answered > left) {
    return Refuse(Refusal::kWouldBeLate,
                  absl::ResourceExhaustedError(absl::StrCat(
                      "would be answered in about ", Milliseconds(answered), " ms, and ", Milliseconds(left),
                      " ms are left until the deadline: come back later, or allow more time")));
  }
  return {};
}

bool RunsHere(const ScheduledTask& task, const TaskCost& cost, const PoolLoad& pool, const SchedulerOptions& options) {
  if (task.items.empty()) return true;
  const bool is_small =
      cost.may_run_inline && cost.flop <= options.max_inline_flop && cost.bytes <= options.max_inline_bytes;
  if (!is_small || pool.tasks == 0) return is_small;
  return pool.busy_threads == options.threads && task.priority == Priority::kNormal && task.share_key == nullptr;
}

Time NextLook(Time accepted, Time deadline, bool is_queued, const SchedulerOptions& options) {
  if (!is_queued || options.max_queue_time > kNever - accepted) return deadline;
  return std::min(deadline, accepted + options.max_queue_time);
}

Refusal ExpiryReason(Time deadline, Time now) { return deadline <= now ? Refusal::kDeadline : Refusal::kQueueTime; }

absl::Status EarlyEnd(Refusal reason, const SchedulerOptions& options) {
  switch (reason) {
    case Refusal::kDraining:
      return absl::UnavailableError("the server is draining; retry on another one");
    case Refusal::kQueueTime:
      return absl::ResourceExhaustedError(
          absl::StrCat("waited longer than max_queue_time (", Milliseconds(options.max_queue_time), " ms)"));
    case Refusal::kDeadline:
      return absl::DeadlineExceededError("the deadline passed before the request was computed");
    case Refusal::kCancelled:
      return absl::CancelledError("cancelled by the caller");
    case Refusal::kBytes:
    case Refusal::kTasks:
    case Refusal::kWouldBeLate:
    case Refusal::kPeer:
      break;
  }
  TRIAD_CHECK(false, "what was let in does not end for a reason not to let it in");
  return absl::InternalError("");
}

ListBudget BudgetOf(const SchedulerOptions& options) {
  return {.max_tokens = options.max_batch_tokens,
          .max_flop = options.max_batch_flop,
          .max_shared_tokens = options.max_shared_tokens};
}

absl::Status Validate(const SchedulerOptions& options) {
  const auto at_least = [](absl::string_view option, int64_t least, int64_t value) {
    return value >= least ? absl::OkStatus()
                          : absl::InvalidArgumentError(absl::StrCat(option, " must be >= ", least, "; was ", value));
  };
  const auto non_negative = [](absl::string_view option, double value) {
    return value >= 0 && std::isfinite(value)
               ? absl::OkStatus()
               : absl::InvalidArgumentError(absl::StrCat(option, " must be finite and >= 0; was ", value));
  };
  absl::Status status = at_least("threads", 1, options.threads);
  if (options.niceness < 0 || options.niceness > 19) {
    status.Update(
        absl::InvalidArgumentError(absl::StrCat("niceness must lie between 0 and 19; was ", options.niceness)));
  }
  status.Update(at_least("max_in_flight_bytes", 1, options.max_in_flight_bytes));
  status.Update(at_least("max_in_flight_requests", 1, options.max_in_flight_requests));
  status.Update(at_least("max_queue_time in nanoseconds", 1, options.max_queue_time.count()));
  status.Update(at_least("max_batch_tokens", 1, options.max_batch_tokens));
  status.Update(at_least("max_shared_tokens", 0, options.max_shared_tokens));
  status.Update(non_negative("max_batch_flop", options.max_batch_flop));
  status.Update(non_negative("max_inline_flop", options.max_inline_flop));
  status.Update(at_least("max_inline_bytes", 0, options.max_inline_bytes));
  return status;
}

}  // namespace triad
