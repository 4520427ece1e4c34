// Tiles of scores, whose two products are oneDNN primitives and whose softmax is Highway. The path for bf16 on CPUs
// that multiply it, and the yardstick of the fused kernel.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/attention/attention_kernel.h"
#include "core/base/cpu.h"

namespace triad {

class OneDnnAttention final : public AttentionKernel {
 public:
  // `isa` decides the shape of tiles, and whether bf16 is multiplied as bf16 (AVX512-BF16) or widened when packed. It
  // must be that of UseInstructionSet. INTERNAL when oneDNN cannot make an engine.
  static absl::StatusOr<std::unique_ptr<OneDnnAttention>> Create(InstructionSet isa);
  ~OneDnnAttention() override;

  absl::string_view name() const override { return "onednn"; }
  std::vector<WorkItem> Plan(const AttentionProblem& problem) const override;
  absl::Status Run(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                   Scratch& scratch) const override;

 private:
  class Impl;
  explicit OneDnnAttention(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace triad
