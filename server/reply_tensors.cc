#include "server/reply_tensors.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/dims.h"
#include "server/resize_unwritten.h"

namespace triad {
namespace {

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

}  // namespace

absl::Status CheckPlanSize(const AttentionProblem& problem, int64_t max_head_sequences) {
  const auto sequences = static_cast<int64_t>(problem.sequences.size());
  const std::optional<int64_t> pairs = CheckedMul(sequences, problem.kv_heads);
  if (pairs && *pairs <= max_head_sequences) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("sequences * kv_heads must be at most --max_head_sequences = ",
                                                 max_head_sequences, "; was ", sequences, " * ", problem.kv_heads));
}

int64_t PlanBytes(const AttentionProblem& problem, const std::vector<WorkItem>& items) {
  return static_cast<int64_t>(items.size() * 2 * sizeof(WorkItem) + problem.sequences.size() * sizeof(Sequence));
}

int64_t ReplyBytes(const AttentionProblem& problem, const ReplyOutput& output) {
  int64_t bytes = TensorBytes(output.dtype, output.shape).value_or(0);
  if (problem.return_lse) bytes += TensorBytes(DType::kF32, problem.lse_shape).value_or(0);
  if (problem.return_weights) bytes += TensorBytes(DType::kF32, problem.weights_shape).value_or(0);
  return bytes;
}

std::byte* SizeTensor(DType dtype, const Shape& shape, v1::Tensor& tensor) {
  tensor.set_dtype(EncodeDType(dtype));
  tensor.mutable_shape()->Add(shape.begin(), shape.end());
  std::string& data = *tensor.mutable_data();
  ResizeUnwritten(data, static_cast<size_t>(TensorBytes(dtype, shape).value_or(0)));
  return reinterpret_cast<std::byte*>(data.data());
}

ComputedRequest EffortOf(const TaskTimes& times) {
  return {.queue = times.started - times.accepted, .compute = times.finished - times.started};
}

void SetTimings(const ComputedRequest& effort, Duration total, v1::Timings& timings) {
  timings.set_queue_ns(effort.queue.count());
  timings.set_compute_ns(effort.compute.count());
  timings.set_total_ns(total.count());
}

}  // namespace triad
