// Our own kernel, in Highway: for f32, what is widened to it, and bf16 where the CPU multiplies it. Keys and values are
// read where they lie.
#pragma once

#include <vector>

#include "core/attention/attention_kernel.h"
#include "core/attention/lane_product.h"

namespace triad {

class FusedAttention final : public AttentionKernel {
 public:
  explicit FusedAttention(InstructionSet isa) : shape_(StripShapeOf(isa)) {}

  absl::string_view name() const override { return "fused"; }
  std::vector<WorkItem> Plan(const AttentionProblem& problem) const override;
  // Where every item has few rows, which pass over keys and values once, and a token's keys are no wider than fits
  // the scratch memory of those that lie in two pieces.
  bool ReadsPieces(const AttentionProblem& problem) const override;
  absl::Status Run(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                   Scratch& scratch) const override;

 private:
  const StripShape shape_;
};

}  // namespace triad
