// Plans items of whole tiles of rows (tile_geometry.h says how many) and hands each to a OneDnnItem (onednn_item.cc),
// where the computing is. What is shared between threads, the compiled products, is in MatmulCache.
#include "core/attention/onednn_attention.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "core/attention/item_cost.h"
#include "core/attention/onednn_item.h"
#include "core/attention/onednn_matmul.h"
#include "core/attention/tile_geometry.h"

namespace triad {

class OneDnnAttention::Impl {
 public:
  explicit Impl(InstructionSet isa) : layout_(LayoutFor(isa)) {}

  absl::Status Run(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                   Scratch& scratch) {
    scratch.Reset();
    return OneDnnItem({.layout = layout_, .products = products_, .problem = problem, .outputs = outputs}, item, scratch)
        .Run();
  }

 private:
  const TileLayout layout_;
  MatmulCache products_;
};

OneDnnAttention::OneDnnAttention(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
OneDnnAttention::~OneDnnAttention() = default;

absl::StatusOr<std::unique_ptr<OneDnnAttention>> OneDnnAttention::Create(InstructionSet isa) {
  if (absl::Status status = CheckOneDnn(); !status.ok()) return status;
  return std::unique_ptr<OneDnnAttention>(new OneDnnAttention(std::make_unique<Impl>(isa)));
}

std::vector<WorkItem> OneDnnAttention::Plan(const AttentionProblem& problem) const {
  std::vector<WorkItem> items =
      PlanItems(problem, kTiledItems, [&](const WorkItem& item) { return FlopOf(problem, item); });
  SetCosts(problem, items);
  return items;
}

absl::Status OneDnnAttention::Run(const AttentionProblem& problem, const WorkItem& item,
                                  const AttentionOutputs& outputs, Scratch& scratch) const {
  return impl_->Run(problem, item, outputs, scratch);
}

}  // namespace triad
