#include "core/attention/attention_kernel.h"

namespace triad {

absl::Status RunAll(const AttentionKernel& kernel, const AttentionProblem& problem, const AttentionOutputs& outputs,
                    Scratch& scratch) {
  for (const WorkItem& item : kernel.Plan(problem)) {
    if (absl::Status status = kernel.Run(problem, item, outputs, scratch); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace triad
