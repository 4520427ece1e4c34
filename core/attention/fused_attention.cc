// Plans items of whole strips of rows (fused_geometry.h says how many) and hands each to a FusedItem (fused_item.cc),
// where the computing is.
#include "core/attention/fused_attention.h"

#include <algorithm>
#include <vector>

#include "core/attention/fused_geometry.h"
#include "core/attention/fused_item.h"
#include "core/attention/item_cost.h"
#include "core/attention/row_product.h"

namespace triad {
namespace {

// Bytes of the keys, or values, of one token. Of a block of them that lie in two pieces each, the copies are 4 MiB.
constexpr int64_t kWidestPlacedRow = 32768;

}  // namespace

std::vector<WorkItem> FusedAttention::Plan(const AttentionProblem& problem) const {
  std::vector<WorkItem> whole;
  for (const WorkItem& item : PlanItems(problem, FusedItemsOf(problem),
                                        [&](const WorkItem& item) { return FusedFlopOf(problem, item, shape_); })) {
    if (!whole.empty() && ReadsBeside(problem, whole.back(), item)) {
      ++whole.back().kv_heads;
      whole.back().flop += item.flop;
    } else {
      whole.push_back(item);
    }
  }
  std::vector<WorkItem> items;
  items.reserve(whole.size());
  for (const WorkItem& item : whole) SplitItem(problem, item, items);
  SetCosts(problem, items);
  return items;
}

bool FusedAttention::ReadsPieces(const AttentionProblem& problem) const {
  const int64_t widest = std::max(problem.qk_head_dim, problem.v_head_dim) * ByteSize(problem.dtype);
  if (problem.kv_heads > kWidestPlacedRow / std::max<int64_t>(widest, 1)) return false;
  return HasFewRows(problem);
}

absl::Status FusedAttention::Run(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                                 Scratch& scratch) const {
  scratch.Reset();
  FusedItem(problem, item, outputs, shape_, scratch).Run();
  return absl::OkStatus();
}

}  // namespace triad
