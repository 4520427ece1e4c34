// The kernel of servers and layers: hands each problem to the fused kernel or to oneDNN's (kernel_choice.h says which).
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/attention/attention_kernel.h"
#include "core/attention/fused_attention.h"
#include "core/attention/kernel_choice.h"
#include "core/attention/onednn_attention.h"
#include "core/base/cpu.h"

namespace triad {

// Keeps oneDNN and every vectorised file below instruction sets past `isa`. Both can be only for the whole process,
// before the first use: the first call decides. FAILED_PRECONDITION when that had another `isa`.
absl::Status UseInstructionSet(InstructionSet isa);

class FastAttention final : public AttentionKernel {
 public:
  // Calls UseInstructionSet. Its errors, and INTERNAL when oneDNN cannot make an engine.
  static absl::StatusOr<std::unique_ptr<FastAttention>> Create(InstructionSet isa,
                                                               KernelChoice choice = KernelChoice::kAuto);

  // "fused", "onednn" or, when only the prefill of bf16 goes to oneDNN, "fused, bf16 by onednn".
  absl::string_view name() const override;
  std::vector<WorkItem> Plan(const AttentionProblem& problem) const override;
  bool ReadsPieces(const AttentionProblem& problem) const override;
  absl::Status Run(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                   Scratch& scratch) const override;

 private:
  FastAttention(InstructionSet isa, KernelChoice choice, std::unique_ptr<OneDnnAttention> onednn);
  const AttentionKernel& KernelFor(const AttentionProblem& problem) const;

  const InstructionSet isa_;
  const KernelChoice choice_;
  const FusedAttention fused_;
  const std::unique_ptr<OneDnnAttention> onednn_;
};

}  // namespace triad
