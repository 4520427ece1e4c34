#include "server/attend_task.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/attention/validate_attention.h"
#include "server/decode_request.h"
#include "server/reply_tensors.h"

namespace triad {
namespace {

// A query row of the reference kernel is an item of its own; its bookkeeping counts as this many multiply-adds.
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
    Gathered gathered;
    if (job.pieces != nullptr && !kernel.ReadsPieces(*problem)) {
      absl::StatusOr<Gathered> whole = Gather(job, decoded->request, *problem);
      if (!whole.ok()) return whole.status();
      gathered = *std::move(whole);
    }
    auto task = std::unique_ptr<AttendTask>(
        new AttendTask(std::move(job), kernel, *std::move(problem), std::move(gathered), clock));
    task->priority_ = decoded->priority;
    task->cost_.may_run_inline = !decoded->use_reference;
    return task;
  } catch (const std::exception& error) {  // std::bad_alloc or std::length_error: sizes are a client's
    return absl::ResourceExhaustedError(absl::StrCat("no memory to plan the request: ", error.what()));
  }
}

absl::StatusOr<AttendTask::Gathered> AttendTask::Gather(AttendJob& job, const AttentionRequest& request,
                                                        AttentionProblem& problem) {
  Gathered gathered;
  const auto gather = [](const TensorView& view, HeadRows& rows, Tensor& to) {
    if (view.pieces == nullptr) return absl::OkStatus();
    absl::StatusOr<Tensor> tensor = Tensor::CopyFrom(view);
    if (!tensor.ok()) return tensor.status();
    to = *std::move(tensor);
    rows.data = to.data();
    rows.pieces = nullptr;
    return absl::OkStatus();
  };
  absl::Status status = gather(request.key, problem.key, gathered.key);
  if (status.ok()) status = gather(request.value, problem.value, gathered.value);
  if (!status.ok()) return status;
  job.pieces.reset();
  return gathered;
}

AttendTask::AttendTask(AttendJob job, const AttentionKernel& kernel, AttentionProblem problem, Gathered gathered,
                       Clock& clock)
    : job_(std::move(job)),
      kernel_(kernel),
      gathered_(std::move(gathered)),
      problem_(std::move(problem)),
      clock_(clock),
      items_(kernel.Plan(problem_)) {
  cost_.tokens = QueryTokens(problem_);
  // What the request holds, not what it would take on the wire: a field given twice keeps the larger one's memory.
  // The reply exists twice once it is serialized.
  cost_.bytes =
      static_cast<int64_t>(job_.request.SpaceUsedLong()) +
      (job_.pieces == nullptr ? gathered_.key.byte_size() + gathered_.value.byte_size() : job_.pieces->held_bytes) +
      2 * ReplyBytes(problem_, {problem_.dtype, problem_.output_shape}) + PlanBytes(problem_, items_);
  for (const WorkItem& item : items_) cost_.flop += item.flop;
}

void AttendTask::MakeReplyOnce() {
  std::call_once(reply_made_, [this] {
    outputs_ = MakeReply(problem_, {problem_.dtype, problem_.output_shape}, job_.response);
  });
}

absl::Status AttendTask::RunItem(int64_t item, Scratch& scratch) {
  MakeReplyOnce();
  return kernel_.Run(problem_, items_[static_cast<size_t>(item)], outputs_, scratch);
}

void AttendTask::Finish(absl::Status status, const TaskTimes& times) {
  ComputedRequest effort;
  if (status.ok()) {
    MakeReplyOnce();  // a request without items has an empty reply
    effort = EffortOf(times);
    effort.flop_executed = cost_.flop;
    effort.flop_needed = FlopNeeded(problem_);
    SetTimings(effort, clock_.Now() - job_.received, *job_.response.mutable_timings());
  }
  job_.pieces.reset();  // gRPC's memory, held no longer than it is read
  // Last: the request and the response may be gone when it returns.
  job_.done(std::move(status), effort);
}

}  // namespace triad
