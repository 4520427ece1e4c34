// Plans items of whole tiles of rows (tile_geometry.h says how many) and hands each to a OneDnnItem (onednn_item.cc),
// where the computing is. What is shared between threads, the compiled products, is in MatmulCache.
#include "core/attention/onednn_attention.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
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
  std::vector<WorkItem> items;
  for (size_t s = 0; s < problem.sequences.size(); ++s) {
    const int64_t rows = problem.sequences[s].q_len * problem.group();
    const int64_t item_rows = RowsPerItem(problem, problem.sequences[s]);
    for (int64_t row = 0; row < rows; row += item_rows) {
      WorkItem item{.sequence = static_cast<int64_t>(s), .row_begin = row, .row_end = std::min(row + item_rows, rows)};
      item.flop = FlopOf(problem, item);
      for (item.kv_head = 0; item.kv_head < problem.kv_heads; ++item.kv_head) items.push_back(item);
    }
  }
  return items;
}

absl::Status OneDnnAttention::Run(const AttentionProblem& problem, const WorkItem& item,
                                  const AttentionOutputs& outputs, Scratch& scratch) const {
  return impl_->Run(problem, item, outputs, scratch);
}

}  // namespace triad
