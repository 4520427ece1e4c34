#include "server/attend_task.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/attention/validate_attention.h"
#include "server/decode_request.h"
#include "server/reply_tensors.h"

namespace triad {
namespace {

// What a query row costs the reference kernel beside its keys counts as this many multiply-adds.
constexpr double kReferenceRowWork = 256;

int64_t QueryTokens(const AttentionProblem& problem) {
  int64_t tokens = 0;
  for (const Sequence& sequence : problem.sequences) tokens += sequence.q_len;
  return tokens;
}

absl::Status CheckReferenceWork(const AttentionProblem& problem, int64_t max_work) {
  const double rows = static_cast<double>(QueryTokens(problem)) * static_cast<double>(problem.heads);
  const double work = FlopNeeded(problem) / 2 + rows * kReferenceRowWork;
  if (work <= static_cast<double>(max_work)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("kernel = KERNEL_REFERENCE must need at most --max_reference_work = ", max_work,
                   " multiply-adds; this request needs ", work, ". Ask for less, or use KERNEL_AUTO"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<AttendTask>> AttendTask::Create(AttendJob job, const AttendKernels& kernels,
                                                               Clock& clock) {
  try {
    absl::StatusOr<DecodedAttend> decoded = DecodeAttend(job.request, kernels.limits.max_batch, job.pieces.get());
    if (!decoded.ok()) return decoded.status();
    absl::StatusOr<AttentionProblem> problem = ValidateAttention(decoded->request, kernels.limits);
    if (!problem.ok()) return problem.status();
    absl::Status status = CheckPlanSize(*problem, kernels.max_head_sequences);
    if (status.ok() && decoded->use_reference) status = CheckReferenceWork(*problem, kernels.max_reference_work);
    if (!status.ok()) return status;
    const AttentionKernel& kernel = decoded->use_reference ? kernels.reference : kernels.fast;
    auto task = std::unique_ptr<AttendTask>(new AttendTask(std::move(job), kernel, *std::move(problem), clock));
    task->priority_ = decoded->priority;
    task->cost_.may_run_inline = !decoded->use_reference;
    return task;
  } catch (const std::exception& error) {  // std::bad_alloc or std::length_error: sizes are a client's
    return absl::ResourceExhaustedError(absl::StrCat("no memory to plan the request: ", error.what()));
  }
}

AttendTask::AttendTask(AttendJob job, const AttentionKernel& kernel, AttentionProblem problem, Clock& clock)
    : job_(std::move(job)), kernel_(kernel), problem_(std::move(problem)), clock_(clock) {
  if (job_.pieces != nullptr && !kernel.ReadsPieces(problem_)) gathered_ = std::make_unique<GatheredRows>(problem_);
  is_gathering_ = gathered_ != nullptr;
  items_ = kernel.Plan(problem_);
  cost_.tokens = QueryTokens(problem_);
  // What the request holds, not what it would take on the wire: a field given twice keeps the larger one's memory.
  // The reply exists twice once it is serialized.
  cost_.bytes = static_cast<int64_t>(job_.request.SpaceUsedLong()) +
                (job_.pieces == nullptr ? 0 : job_.pieces->held_bytes) +
                2 * ReplyBytes(problem_, {problem_.dtype, problem_.output_shape}) + PlanBytes(problem_, items_);
  for (const WorkItem& item : items_) {
    kernel_flop_ += item.flop;
    cost_.flop += item.cost;
  }
  if (gathered_ == nullptr) return;
  cost_.bytes += gathered_->byte_size();
  cost_.flop += gathered_->flop();
}

int64_t AttendTask::item_count() const {
  return is_gathering_ ? gathered_->item_count() : static_cast<int64_t>(items_.size());
}

double AttendTask::item_flop(int64_t item) const {
  return is_gathering_ ? gathered_->item_flop(item) : items_[static_cast<size_t>(item)].cost;
}

void AttendTask::MakeReplyOnce() {
  std::call_once(reply_made_, [this] {
    outputs_ = MakeReply(problem_, {problem_.dtype, problem_.output_shape}, job_.response);
  });
}

absl::Status AttendTask::RunItem(int64_t item, Scratch& scratch) {
  if (is_gathering_) {
    gathered_->Copy(item);
    return absl::OkStatus();
  }
  MakeReplyOnce();
  return kernel_.Run(problem_, items_[static_cast<size_t>(item)], outputs_, scratch);
}

bool AttendTask::NextStage() {
  if (!is_gathering_) return false;
  is_gathering_ = false;
  gathered_->PutInto(problem_);
  job_.pieces.reset();
  return true;
}

void AttendTask::Finish(absl::Status status, const TaskTimes& times) {
  ComputedRequest effort;
  if (status.ok()) {
    MakeReplyOnce();  // a request without items has an empty reply
    effort = EffortOf(times);
    effort.flop_executed = kernel_flop_;
    effort.flop_needed = FlopNeeded(problem_);
    SetTimings(effort, clock_.Now() - job_.received, *job_.response.mutable_timings());
  }
  job_.pieces.reset();  // gRPC's memory, held no longer than it is read
  // Last: the request and the response may be gone when it returns.
  job_.done(std::move(status), effort);
}

}  // namespace triad
