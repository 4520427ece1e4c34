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
#include "server/gathered_rows.h"
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
// response's tensors. Those are made by the first item that needs them, so that a request which waits or is refused
// costs no reply, nor a copy.
//
//   stage 0  keys and values that lie in pieces are copied together, for a kernel that does not read them there
//   stage 1  the kernel's items
class AttendTask final : public Task {
 public:
  // Decodes, validates and plans; copies no payload. UNIMPLEMENTED and INVALID_ARGUMENT as DecodeAttend and
  // ValidateAttention have them, also when KERNEL_REFERENCE is asked for too much; RESOURCE_EXHAUSTED when there is no
  // memory for the plan. Throws nothing.
  static absl::StatusOr<std::unique_ptr<AttendTask>> Create(AttendJob job, const AttendKernels& kernels, Clock& clock);

  TaskCost cost() const override { return cost_; }
  Priority priority() const override { return priority_; }
  Time deadline() const override { return job_.deadline; }
  int64_t item_count() const override;
  double item_flop(int64_t item) const override;
  absl::Status RunItem(int64_t item, Scratch& scratch) override;
  bool NextStage() override;
  void Finish(absl::Status status, const TaskTimes& times) override;

 private:
  AttendTask(AttendJob job, const AttentionKernel& kernel, AttentionProblem problem, Clock& clock);
  void MakeReplyOnce();  // may throw std::bad_alloc

  AttendJob job_;
  const AttentionKernel& kernel_;
  std::unique_ptr<GatheredRows> gathered_;  // null: nothing has to be
  bool is_gathering_ = false;               // stage 0
  AttentionProblem problem_;                // borrows the bytes of job_.request, job_.pieces and gathered_
  Clock& clock_;
  std::vector<WorkItem> items_;
  double kernel_flop_ = 0;  // of items_
  TaskCost cost_;
  Priority priority_ = Priority::kNormal;

  std::once_flag reply_made_;
  AttentionOutputs outputs_;  // into job_.response; set by MakeReplyOnce
};

}  // namespace triad
