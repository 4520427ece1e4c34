// One Attend, unary or item of a stream, as the scheduler runs it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/attention/attention_kernel.h"
#include "core/attention/attention_request.h"
#include "core/batching/task.h"
#include "core/tensor/tensor.h"
#include "server/job.h"
#include "triad/v1/attention.pb.h"

namespace triad {

// Which kernels answer, and what they may be asked for. Constant while the server runs; borrowed.
struct AttendKernels {
  AttentionLimits limits;
  int64_t max_reference_work = 0;    // multiply-adds of one request with KERNEL_REFERENCE
  int64_t max_head_sequences = 0;    // pairs of a sequence and a kv head
  const AttentionKernel& fast;       // answers KERNEL_AUTO
  const AttentionKernel& reference;  // answers KERNEL_REFERENCE
};

using AttendJob = Job<v1::AttendRequest, v1::AttendResponse>;

// The kernels read the request's bytes in place, few rows even keys and values that lie in pieces, and write into the
// response's tensors. Those are made by the first item that runs, so that a request which waits or is refused costs no
// reply.
class AttendTask final : public Task {
 public:
  // Decodes, validates and plans; copies no payload. UNIMPLEMENTED and INVALID_ARGUMENT as DecodeAttend and
  // ValidateAttention have them, also when KERNEL_REFERENCE is asked for too much; RESOURCE_EXHAUSTED when there is no
  // memory for the plan. Throws nothing.
  static absl::StatusOr<std::unique_ptr<AttendTask>> Create(AttendJob job, const AttendKernels& kernels, Clock& clock);

  TaskCost cost() const override { return cost_; }
  Priority priority() const override { return priority_; }
  Time deadline() const override { return job_.deadline; }
  int64_t item_count() const override { return static_cast<int64_t>(items_.size()); }
  double item_flop(int64_t item) const override { return items_[static_cast<size_t>(item)].flop; }
  absl::Status RunItem(int64_t item, Scratch& scratch) override;
  void Finish(absl::Status status, const TaskTimes& times) override;

 private:
  // Keys and values in one piece each, for a kernel that does not read them in pieces.
  struct Gathered {
    Tensor key;
    Tensor value;
  };

  AttendTask(AttendJob job, const AttentionKernel& kernel, AttentionProblem problem, Gathered gathered, Clock& clock);
  // Gathers what `problem` has in pieces, and lets go of these.
  static absl::StatusOr<Gathered> Gather(AttendJob& job, const AttentionRequest& request, AttentionProblem& problem);
  void MakeReplyOnce();  // may throw std::bad_alloc

  AttendJob job_;
  const AttentionKernel& kernel_;
  const Gathered gathered_;
  const AttentionProblem problem_;  // borrows the bytes of job_.request, job_.pieces and gathered_
  Clock& clock_;
  std::vector<WorkItem> items_;
  TaskCost cost_;
  Priority priority_ = Priority::kNormal;

  std::once_flag reply_made_;
  AttentionOutputs outputs_;  // into job_.response; set by MakeReplyOnce
};

}  // namespace triad
