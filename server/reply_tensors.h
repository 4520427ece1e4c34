// The tensors of a reply: how large they will be, and making them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/attention/attention_kernel.h"
#include "core/attention/attention_problem.h"
#include "core/batching/task.h"
#include "core/tensor/tensor.h"
#include "server/metrics.h"
#include "triad/v1/attention.pb.h"

namespace triad {

// INVALID_ARGUMENT when `problem` has more pairs of a sequence and a kv head, and so would be planned into many times
// the size of its message.
absl::Status CheckPlanSize(const AttentionProblem& problem, int64_t max_head_sequences);

// Bookkeeping of the request, the scheduler's copy of the items included: of tiny heads it may outweigh the tensors.
int64_t PlanBytes(const AttentionProblem& problem, const std::vector<WorkItem>& items);

// The output of a reply. Not the problem's: a hosted layer answers in its input's type and width, whatever it computes
// in.
struct ReplyOutput {
  DType dtype = DType::kF32;
  const Shape& shape;
};

// Bytes of output, lse and weights together, for a problem whose sizes have been validated.
int64_t ReplyBytes(const AttentionProblem& problem, const ReplyOutput& output);

// Gives `tensor` its type, shape and bytes, and returns where the bytes lie. They hold anything: the kernels write
// every one (AttentionOutputs), and ForwardBatch does. So this takes no longer for a large reply, for which others may
// wait. May throw std::bad_alloc.
std::byte* SizeTensor(DType dtype, const Shape& shape, v1::Tensor& tensor);

// Makes the tensors of an AttendResponse or ForwardResponse. May throw std::bad_alloc.
template <class Response>
AttentionOutputs MakeReply(const AttentionProblem& problem, const ReplyOutput& output, Response& response) {
  AttentionOutputs outputs{.output = SizeTensor(output.dtype, output.shape, *response.mutable_output())};
  if (problem.return_lse) {
    outputs.lse = reinterpret_cast<float*>(SizeTensor(DType::kF32, problem.lse_shape, *response.mutable_lse()));
  }
  if (problem.return_weights) {
    outputs.weights =
        reinterpret_cast<float*>(SizeTensor(DType::kF32, problem.weights_shape, *response.mutable_weights()));
  }
  return outputs;
}

// What `times` say of a request that was computed, for its metrics; and, with the time it took from `received` to
// `now`, for its caller.
ComputedRequest EffortOf(const TaskTimes& times);
void SetTimings(const ComputedRequest& effort, Duration total, v1::Timings& timings);

}  // namespace triad
