#include "server/attend_task.h"

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/attention/validate_attention.h"
#include "core/base/dims.h"
#include "server/decode_request.h"

namespace triad {
namespace {

// Pairs of a sequence and a kv head, each at least one work item of some 64 bytes of bookkeeping, in one request: a
// message of tiny heads could otherwise be planned into many times its own size.
constexpr int64_t kMaxHeadSequences = 1 << 20;

// A query row of the reference kernel is an item of its own; its bookkeeping counts as this many multiply-adds.
constexpr double kReferenceRowWork = 256;

int64_t QueryTokens(const AttentionProblem& problem) {
  int64_t tokens = 0;
  for (const Sequence& sequence : problem.sequences) tokens += sequence.q_len;
  return tokens;
}

absl::Status CheckPlanSize(const AttentionProblem& problem) {
  const auto sequences = static_cast<int64_t>(problem.sequences.size());
  const std::optional<int64_t> pairs = CheckedMul(sequences, problem.kv_heads);
  if (pairs && *pairs <= kMaxHeadSequences) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("sequences * kv_heads must be at most ", kMaxHeadSequences, "; was ",
                                                 sequences, " * ", problem.kv_heads));
}

absl::Status CheckReferenceWork(const AttentionProblem& problem, int64_t max_work) {
  const double rows = static_cast<double>(QueryTokens(problem)) * static_cast<double>(problem.heads);
  const double work = FlopNeeded(problem) / 2 + rows * kReferenceRowWork;
  if (work <= static_cast<double>(max_work)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("kernel = KERNEL_REFERENCE must need at most --max_reference_work = ", max_work,
                   " multiply-adds; this request needs ", work, ". Ask for less, or use KERNEL_AUTO"));
}

int64_t ReplyBytes(const AttentionProblem& problem) {
  // Validation has bounded their sum.
  int64_t bytes = TensorBytes(problem.dtype, problem.output_shape).value_or(0);
  if (problem.return_lse) bytes += TensorBytes(DType::kF32, problem.lse_shape).value_or(0);
  if (problem.return_weights) bytes += TensorBytes(DType::kF32, problem.weights_shape).value_or(0);
  return bytes;
}

// Bookkeeping of the request, the scheduler's copy of the items included: of tiny heads it may outweigh the tensors.
int64_t PlanBytes(const AttentionProblem& problem, const std::vector<WorkItem>& items) {
  return static_cast<int64_t>(items.size() * 2 * sizeof(WorkItem) + problem.sequences.size() * sizeof(Sequence));
}

v1::DataType EncodeDType(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return v1::FLOAT32;
    case DType::kBf16:
      return v1::BFLOAT16;
    case DType::kF16:
      return v1::FLOAT16;
    case DType::kBool:
      return v1::BOOL;
  }
  return v1::DATA_TYPE_UNSPECIFIED;
}

// Gives `tensor` its type, shape and bytes, and returns where the bytes lie. They are zeroed once here because
// std::string cannot be sized without; the kernels overwrite them.
char* SizeTensor(DType dtype, const Shape& shape, v1::Tensor& tensor) {
  tensor.set_dtype(EncodeDType(dtype));
  tensor.mutable_shape()->Add(shape.begin(), shape.end());
  std::string& data = *tensor.mutable_data();
  data.resize(static_cast<size_t>(TensorBytes(dtype, shape).value_or(0)));
  return data.data();
}

}  // namespace

absl::StatusOr<std::unique_ptr<AttendTask>> AttendTask::Create(AttendJob job, const AttendKernels& kernels,
                                                               Clock& clock) {
  try {
    absl::StatusOr<DecodedAttend> decoded = DecodeAttend(job.request, kernels.limits.max_batch);
    if (!decoded.ok()) return decoded.status();
    absl::StatusOr<AttentionProblem> problem = ValidateAttention(decoded->request, kernels.limits);
    if (!problem.ok()) return problem.status();
    absl::Status status = CheckPlanSize(*problem);
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
    : job_(std::move(job)),
      kernel_(kernel),
      problem_(std::move(problem)),
      clock_(clock),
      items_(kernel.Plan(problem_)) {
  cost_.tokens = QueryTokens(problem_);
  // What the request holds, not what it would take on the wire: a field given twice keeps the larger one's memory.
  // The reply exists twice once it is serialized.
  cost_.bytes =
      static_cast<int64_t>(job_.request.SpaceUsedLong()) + 2 * ReplyBytes(problem_) + PlanBytes(problem_, items_);
  for (const WorkItem& item : items_) cost_.flop += item.flop;
}

void AttendTask::MakeReply() {
  v1::AttendResponse& response = job_.response;
  outputs_.output =
      reinterpret_cast<std::byte*>(SizeTensor(problem_.dtype, problem_.output_shape, *response.mutable_output()));
  if (problem_.return_lse) {
    outputs_.lse = reinterpret_cast<float*>(SizeTensor(DType::kF32, problem_.lse_shape, *response.mutable_lse()));
  }
  if (problem_.return_weights) {
    outputs_.weights =
        reinterpret_cast<float*>(SizeTensor(DType::kF32, problem_.weights_shape, *response.mutable_weights()));
  }
}

absl::Status AttendTask::RunItem(int64_t item, Scratch& scratch) {
  std::call_once(reply_made_, [this] { MakeReply(); });
  return kernel_.Run(problem_, items_[static_cast<size_t>(item)], outputs_, scratch);
}

void AttendTask::Finish(absl::Status status, const TaskTimes& times) {
  ComputedRequest effort;
  if (status.ok()) {
    std::call_once(reply_made_, [this] { MakeReply(); });  // a request without items has an empty reply
    effort = {.queue = times.started - times.accepted,
              .compute = times.finished - times.started,
              .flop_executed = cost_.flop,
              .flop_needed = FlopNeeded(problem_)};
    v1::Timings& timings = *job_.response.mutable_timings();
    timings.set_queue_ns(effort.queue.count());
    timings.set_compute_ns(effort.compute.count());
    timings.set_total_ns((clock_.Now() - job_.received).count());
  }
  // Last: the request and the response may be gone when it returns.
  job_.done(std::move(status), effort);
}

}  // namespace triad
