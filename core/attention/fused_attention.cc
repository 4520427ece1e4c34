// Plans items of whole strips of rows (fused_geometry.h says how many) and hands each to a FusedItem (fused_item.cc),
// where the computing is.
#include "core/attention/fused_attention.h"

#include <algorithm>

#include "core/attention/fused_geometry.h"
#include "core/attention/fused_item.h"

namespace triad {

std::vector<WorkItem> FusedAttention::Plan(const AttentionProblem& problem) const {
  std::vector<WorkItem> items;
  for (size_t s = 0; s < problem.sequences.size(); ++s) {
    const int64_t rows = problem.sequences[s].q_len * problem.group();
    const int64_t item_rows = FusedRowsPerItem(problem, problem.sequences[s]);
    for (int64_t row = 0; row < rows; row += item_rows) {
      WorkItem item{.sequence = static_cast<int64_t>(s), .row_begin = row, .row_end = std::min(row + item_rows, rows)};
      item.flop = FusedFlopOf(problem, item, shape_);
      for (item.kv_head = 0; item.kv_head < problem.kv_heads; ++item.kv_head) items.push_back(item);
    }
  }
  return items;
}

absl::Status FusedAttention::Run(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                                 Scratch& scratch) const {
  scratch.Reset();
  FusedItem(problem, item, outputs, shape_, scratch).Run();
  return absl::OkStatus();
}

}  // namespace triad
