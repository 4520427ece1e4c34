#include "core/attention/fast_attention.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/attention/fused_geometry.h"
#include "core/attention/onednn_matmul.h"
#include "core/attention/score_tile.h"

namespace triad {

absl::Status UseInstructionSet(InstructionSet isa) {
  static const InstructionSet decided = [isa] {  // by the first call
    if (isa < DetectInstructionSet()) {
      CapOneDnn(isa);
      CapVectorTargets(isa);
    }
    return isa;
  }();
  if (isa == decided) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("a process has one instruction set; was ", Name(isa), " after ", Name(decided)));
}

absl::StatusOr<std::unique_ptr<FastAttention>> FastAttention::Create(InstructionSet isa, KernelChoice choice) {
  if (absl::Status status = UseInstructionSet(isa); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<OneDnnAttention>> onednn = OneDnnAttention::Create(isa);
  if (!onednn.ok()) return onednn.status();
  return std::unique_ptr<FastAttention>(new FastAttention(isa, choice, *std::move(onednn)));
}

FastAttention::FastAttention(InstructionSet isa, KernelChoice choice, std::unique_ptr<OneDnnAttention> onednn)
    : isa_(isa), choice_(choice), fused_(isa), onednn_(std::move(onednn)) {}

absl::string_view FastAttention::name() const {
  if (UsesOneDnn(choice_, isa_, DType::kF32, /*few_rows=*/false)) return onednn_->name();
  return UsesOneDnn(choice_, isa_, DType::kBf16, /*few_rows=*/false) ? "fused, bf16 by onednn" : fused_.name();
}

const AttentionKernel& FastAttention::KernelFor(const AttentionProblem& problem) const {
  if (UsesOneDnn(choice_, isa_, problem.dtype, HasFewRows(problem))) return *onednn_;
  return fused_;
}

std::vector<WorkItem> FastAttention::Plan(const AttentionProblem& problem) const {
  const AttentionKernel& kernel = KernelFor(problem);
  std::vector<WorkItem> items = kernel.Plan(problem);
  for (WorkItem& item : items) item.kernel = &kernel;  // to find it, all sequences are looked at
  return items;
}

bool FastAttention::ReadsPieces(const AttentionProblem& problem) const {
  return KernelFor(problem).ReadsPieces(problem);
}

absl::Status FastAttention::Run(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                                Scratch& scratch) const {
  return item.kernel->Run(problem, item, outputs, scratch);
}

}  // namespace triad
