// Some requests for one layer, computed together: their rows share each projection's products, without padding; their
// attention is each one's own.
//
//   stage 1  projections: rows of all requests x columns of [query | key | value]; then bias, rotary, rounding
//   stage 2  attention: the kernel's work items of each request, from and to the activations
//   stage 3  output projection, into the replies; and what their padding holds
//
// A row's bytes do not depend on who shares the batch, nor on its place in it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/attention/attention_kernel.h"
#include "core/base/scratch.h"
#include "core/layer/forward_problem.h"
#include "core/layer/hosted_layer.h"
#include "core/layer/reply_padding.h"

namespace triad {

// One request of a batch, and where its answer goes. Borrowed until the batch is gone.
struct ForwardMember {
  const ForwardProblem* problem = nullptr;
  ForwardReply reply;
};

class ForwardBatch {
 public:
  enum class Stage { kProjections, kAttention, kOutput };
  static constexpr int kStages = 3;

  // `layer` and `kernel` outlive the batch. Allocates the activations. RESOURCE_EXHAUSTED: no memory.
  static absl::StatusOr<std::unique_ptr<ForwardBatch>> Create(const HostedLayer& layer, const AttentionKernel& kernel,
                                                              std::vector<ForwardMember> members);
  ~ForwardBatch();

  // The items of a stage, by the cost of each (WorkItem). A stage may have none. How work is split may depend on the
  // batch; bytes do not.
  absl::Span<const double> item_costs(Stage stage) const;
  // What all items execute, padding included.
  double flop() const;

  // Computes one item. Items of a stage may run at once on different threads, each once; a stage begins when the one
  // before has ended. `scratch` is the thread's, and is Reset here. INTERNAL: oneDNN failed.
  absl::Status RunItem(Stage stage, int64_t item, Scratch& scratch);

 private:
  class Impl;
  explicit ForwardBatch(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

// What stages 1 and 3 execute for `problem` alone, padding included: the sum of their items. A batch executes at most
// the sum of its members'. May throw std::bad_alloc.
double ProjectionFlop(const HostedLayer& layer, const ForwardProblem& problem);

// Runs all stages of one request on the calling thread. For tests, benches, and warming up.
absl::Status RunForward(const HostedLayer& layer, const AttentionKernel& kernel, const ForwardMember& member,
                        Scratch& scratch);

}  // namespace triad
