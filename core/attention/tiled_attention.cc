// Plans items of whole tiles of rows (tile_geometry.h says how many) and hands each to a TiledItem (tiled_item.cc),
// where the computing is. What is shared between threads, the compiled products, is in MatmulCache.
#include "core/attention/tiled_attention.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/attention/onednn_matmul.h"
#include "core/attention/score_tile.h"
#include "core/attention/tile_geometry.h"
#include "core/attention/tiled_item.h"

namespace triad {

class TiledAttention::Impl {
 public:
  Impl(InstructionSet isa, F32Products products) : onednn_layout_(LayoutFor(isa)), products_kind_(products) {}

  const TileLayout& LayoutOf(const AttentionProblem& problem) const {
    const bool multiplies_bf16 = problem.dtype == DType::kBf16 && onednn_layout_.bf16_products;
    return multiplies_bf16 || products_kind_ == F32Products::kOneDnn ? onednn_layout_ : kOwnLayout;
  }

  absl::Status Run(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                   Scratch& scratch) {
    scratch.Reset();
    return TiledItem({.layout = LayoutOf(problem), .products = products_, .problem = problem, .outputs = outputs}, item,
                     scratch)
        .Run();
  }

 private:
  const TileLayout onednn_layout_;
  const F32Products products_kind_;
  MatmulCache products_;
};

TiledAttention::TiledAttention(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TiledAttention::~TiledAttention() = default;

absl::StatusOr<std::unique_ptr<TiledAttention>> TiledAttention::Create(InstructionSet isa, F32Products products) {
  static const InstructionSet decided = isa;  // by the first call
  if (isa != decided) {
    return absl::FailedPreconditionError(
        absl::StrCat("a process has one instruction set; was ", Name(isa), " after ", Name(decided)));
  }
  if (isa < DetectInstructionSet()) {
    CapOneDnn(isa);
    CapVectorTargets(isa);
  }
  if (absl::Status status = CheckOneDnn(); !status.ok()) return status;
  return std::unique_ptr<TiledAttention>(new TiledAttention(std::make_unique<Impl>(isa, products)));
}

std::vector<WorkItem> TiledAttention::Plan(const AttentionProblem& problem) const {
  std::vector<WorkItem> items;
  for (size_t s = 0; s < problem.sequences.size(); ++s) {
    const int64_t rows = problem.sequences[s].q_len * problem.group();
    const int64_t item_rows = RowsPerItem(problem, problem.sequences[s]);
    for (int64_t row = 0; row < rows; row += item_rows) {
      WorkItem item{.sequence = static_cast<int64_t>(s), .row_begin = row, .row_end = std::min(row + item_rows, rows)};
      item.flop = FlopOf(problem, item, impl_->LayoutOf(problem));
      for (item.kv_head = 0; item.kv_head < problem.kv_heads; ++item.kv_head) items.push_back(item);
    }
  }
  return items;
}

absl::Status TiledAttention::Run(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                                 Scratch& scratch) const {
  return impl_->Run(problem, item, outputs, scratch);
}

}  // namespace triad
