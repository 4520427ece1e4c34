#include "server/warm_up.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"

namespace triad {
namespace {

constexpr int64_t kHeads = 8;
constexpr int64_t kHeadDim = 64;

struct WarmShape {
  int64_t q_len;
  int64_t kv_len;
};
// A tiny request, which an idle server computes on the receiving thread; one of several tiles; and a decode step.
constexpr WarmShape kShapes[] = {{16, 16}, {256, 256}, {1, 1024}};

struct WarmRequest {
  v1::AttendRequest request;
  v1::AttendResponse response;
};

void FillTensor(v1::DataType dtype, int64_t bytes_per_element, int64_t tokens, v1::Tensor& tensor) {
  tensor.set_dtype(dtype);
  for (int64_t dim : {int64_t{1}, tokens, kHeads, kHeadDim}) tensor.add_shape(dim);
  tensor.mutable_data()->resize(static_cast<size_t>(tokens * kHeads * kHeadDim * bytes_per_element));  // zeros
}

std::unique_ptr<WarmRequest> MakeRequest(const WarmShape& shape, v1::DataType dtype) {
  auto warm = std::make_unique<WarmRequest>();
  const int64_t bytes = dtype == v1::FLOAT32 ? 4 : 2;
  FillTensor(dtype, bytes, shape.q_len, *warm->request.mutable_query());
  FillTensor(dtype, bytes, shape.kv_len, *warm->request.mutable_key());
  FillTensor(dtype, bytes, shape.kv_len, *warm->request.mutable_value());
  return warm;
}

// Counts answers down.
class Pending {
 public:
  void Add() {
    MutexLock lock(mu_);
    ++left_;
  }
  void Done(absl::Status status) {
    MutexLock lock(mu_);
    status_.Update(std::move(status));
    if (--left_ == 0) none_left_.SignalAll();
  }
  absl::Status Wait() {
    MutexLock lock(mu_);
    while (left_ > 0) none_left_.Wait(mu_);
    return std::move(status_);
  }

 private:
  Mutex mu_;  // guards all below
  CondVar none_left_;
  int left_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

// Sends `count` of one kind at once, and waits.
absl::Status Send(ServingContext& context, const WarmShape& shape, v1::DataType dtype, int count) {
  std::vector<std::unique_ptr<WarmRequest>> requests;
  Pending pending;
  AttendKernels kernels = context.kernels;
  kernels.limits = AttentionLimits();  // flags may bound clients below these shapes
  kernels.max_head_sequences = kHeads;
  for (int i = 0; i < count; ++i) {
    requests.push_back(MakeRequest(shape, dtype));
    pending.Add();
    AttendJob job{.request = requests.back()->request,
                  .response = requests.back()->response,
                  .received = context.clock.Now(),
                  .done = [&pending](absl::Status status, const ComputedRequest&) { pending.Done(std::move(status)); }};
    absl::StatusOr<std::unique_ptr<AttendTask>> task = AttendTask::Create(std::move(job), kernels, context.clock);
    if (!task.ok()) {
      pending.Done(task.status());
      continue;
    }
    std::unique_ptr<Task> submitted = *std::move(task);
    // Bounds that do not let this shape in do not let a client's in either.
    if (!context.scheduler.Submit(submitted).ok()) pending.Done(absl::OkStatus());
  }
  return pending.Wait();
}

}  // namespace

absl::Status WarmUp(ServingContext& context, int threads) {
  for (v1::DataType dtype : {v1::FLOAT32, v1::BFLOAT16, v1::FLOAT16}) {
    for (const WarmShape& shape : kShapes) {
      // Alone, where the scheduler may run it on this thread; then enough for every compute thread to take some.
      for (int count : {1, 2 * threads}) {
        absl::Status status = Send(context, shape, dtype, count);
        // A short --max_queue_time may end some in the queue.
        if (status.ok() || absl::IsResourceExhausted(status)) continue;
        return absl::Status(status.code(), absl::StrCat("warm-up with ", v1::DataType_Name(dtype), " of ", shape.q_len,
                                                        " x ", shape.kv_len, ": ", status.message()));
      }
    }
  }
  // The scheduler lets go of a request just after it has told of its end; the first client must not find the last one
  // there.
  context.scheduler.WaitIdle(kNever);
  return absl::OkStatus();
}

}  // namespace triad
