// The fast kernel: tiles of scores, never the whole matrix. Both products of a tile are our own in f32 and oneDNN
// primitives in bf16, the softmax between them is Highway. With oneDNN for f32 too it is the yardstick of our own.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "core/attention/attention_kernel.h"
#include "core/base/cpu.h"

namespace triad {

// Who multiplies f32 (and what is widened to it). bf16 as bf16 is oneDNN's always.
enum class F32Products { kOwn, kOneDnn };

class TiledAttention final : public AttentionKernel {
 public:
  // `isa` decides the shape of tiles, and whether bf16 is multiplied as bf16 (AVX512-BF16) or widened when packed.
  // Below the machine's it also caps oneDNN and Highway, which both can be only for the whole process: so the first
  // kernel of a process decides. FAILED_PRECONDITION when that had another `isa`; INTERNAL when oneDNN cannot make an
  // engine.
  static absl::StatusOr<std::unique_ptr<TiledAttention>> Create(InstructionSet isa,
                                                                F32Products products = F32Products::kOwn);
  ~TiledAttention() override;

  absl::string_view name() const override { return "tiled"; }
  std::vector<WorkItem> Plan(const AttentionProblem& problem) const override;
  absl::Status Run(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                   Scratch& scratch) const override;

 private:
  class Impl;
  explicit TiledAttention(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace triad
