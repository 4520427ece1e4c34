// The trusted kernel: plain loops in double precision, every option, no tricks. What the others are tested against.
#pragma once

#include "core/attention/attention_kernel.h"

namespace triad {

// One item per (sequence, kv head, query). Follows the definition in attention.proto line by line; memory O(kv_len).
class ReferenceAttention final : public AttentionKernel {
 public:
  absl::string_view name() const override { return "reference"; }
  std::vector<WorkItem> Plan(const AttentionProblem& problem) const override;
  absl::Status Run(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                   Scratch& scratch) const override;
};

}  // namespace triad
