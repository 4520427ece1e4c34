// The trusted kernel: plain loops in double precision, every option, no tricks. What the others are tested against.
#pragma once

#include "core/attention/attention_kernel.h"

namespace triad {

// Follows the definition in attention.proto line by line; memory O(kv_len). An item is some queries of a sequence and
// kv head, or all of some kv heads. A query may be next to no work, so they are folded: however many there are, a
// problem has at most 2 * kMaxFullItems items, and one more for each sequence.
class ReferenceAttention final : public AttentionKernel {
 public:
  static constexpr int64_t kMaxFullItems = 1 << 16;

  absl::string_view name() const override { return "reference"; }
  std::vector<WorkItem> Plan(const AttentionProblem& problem) const override;
  absl::Status Run(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                   Scratch& scratch) const override;
};

}  // namespace triad
