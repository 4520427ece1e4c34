// One Forward, unary or item of a stream, as the scheduler runs it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/attention/attention_kernel.h"
#include "core/attention/attention_request.h"
#include "core/batching/task.h"
#include "core/layer/forward_batch.h"
#include "core/layer/forward_problem.h"
#include "server/job.h"
#include "server/layer_store.h"
#include "triad/v1/attention.pb.h"

namespace triad {

using ForwardJob = Job<v1::ForwardRequest, v1::ForwardResponse>;

// What Forward is answered with. Constant while the server runs; borrowed.
struct ForwardHost {
  AttentionLimits limits;
  int64_t max_head_sequences = 0;  // pairs of a sequence and a kv head
  const AttentionKernel& kernel;
  const LayerStore& layers;
};

// Requests for one version of a layer are computed together: the first whose turn comes takes the work of the others.
//
//   stage 0  one item, which makes the replies and activations of all: what waits or is refused costs neither
//   stages 1 to 3  those of ForwardBatch
//
// They also fail together: when the reply of one cannot be allocated, or the activations of all, everyone who
// shared is answered with RESOURCE_EXHAUSTED.
class ForwardTask final : public Task {
 public:
  // Decodes, finds the layer, validates and plans; copies no payload. UNIMPLEMENTED and INVALID_ARGUMENT as
  // DecodeForward and ValidateForward have them; NOT_FOUND: the layer or version is not loaded; RESOURCE_EXHAUSTED: no
  // memory for the plan. Throws nothing.
  static absl::StatusOr<std::unique_ptr<ForwardTask>> Create(ForwardJob job, const ForwardHost& host, Clock& clock);

  TaskCost cost() const override { return cost_; }
  Priority priority() const override { return priority_; }
  Time deadline() const override { return job_.deadline; }
  // One version of one layer.
  const void* share_key() const override { return layer_.layer.get(); }
  void Share(absl::Span<Task* const> others) override;

  int64_t item_count() const override;
  double item_flop(int64_t item) const override;
  absl::Status RunItem(int64_t item, Scratch& scratch) override;
  bool NextStage() override;
  void Finish(absl::Status status, const TaskTimes& times) override;

 private:
  // Of all who are computed together. Whoever ends with OK first tells metrics of it: the others may be cancelled or
  // late, the one who computes too.
  struct BatchRecord {
    int64_t requests = 1;
    int64_t tokens = 0;
    double flop = 0;  // executed
    std::atomic<bool> is_told{false};
  };

  ForwardTask(ForwardJob job, LoadedLayer layer, ForwardProblem problem, const AttentionKernel& kernel, Clock& clock);
  // Makes this request's reply. May throw std::bad_alloc.
  ForwardMember MakeMember();
  absl::Status MakeBatch();
  ForwardBatch::Stage stage() const { return static_cast<ForwardBatch::Stage>(stage_ - 1); }

  ForwardJob job_;
  const LoadedLayer layer_;       // kept until the request is answered
  const ForwardProblem problem_;  // borrows job_.request's bytes
  const AttentionKernel& kernel_;
  Clock& clock_;
  TaskCost cost_;
  Priority priority_ = Priority::kNormal;

  // Of whoever computes others.
  std::vector<ForwardTask*> sharers_;  // without this one
  int stage_ = 0;                      // as above; ForwardBatch's stages count from 1
  std::unique_ptr<ForwardBatch> batch_;

  // Its own until Share gives it to the others; written before anyone's Finish. Shared: nobody knows who ends last.
  std::shared_ptr<BatchRecord> batch_record_;
};

}  // namespace triad
