// One work item of the fused kernel, from packing its queries to storing its rows. Private to fused_attention.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/attention/attention_kernel.h"
#include "core/attention/block_rows.h"
#include "core/attention/item_rows.h"
#include "core/attention/lane_product.h"
#include "core/attention/row_group.h"
#include "core/attention/row_product.h"
#include "core/attention/split_rows.h"
#include "core/base/scratch.h"

namespace triad {

// Borrows everything it is given, for the length of one Run; its buffers are in `scratch`.
class FusedItem {
 public:
  FusedItem(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
            const StripShape& shape, Scratch& scratch);

  // Writes the item's part of every output; of a split item, if it is the last of its parts.
  void Run();

 private:
  bool has_few_rows() const { return item_.rows_of_head() <= kFewRows; }
  bool multiplies_bf16() const { return shape_.multiplies_bf16 && rows_.problem().dtype == DType::kBf16; }
  InPlace InPlaceOf() const;
  void RunRows();
  void RunHeadsAlone();
  void RunPart();
  void MergeParts(const SplitRows& split);
  void EndChunk();
  void Finish(float value_scale);
  // Whether values were met whose sums may be too large as they are; not told of those read so.
  bool RunBlocks(KeyRange keys, ReadValues values);
  bool IsFinite() const;
  // Adds these keys and values, which come next, to what is to be fetched.
  void ListBlock(KeyRange keys);

  const WorkItem& item_;
  const AttentionOutputs& outputs_;
  const StripShape& shape_;
  ItemRows rows_;
  const int64_t keys_at_once_;
  BlockReader reader_;
  FetchList ahead_;
  std::vector<std::unique_ptr<RowGroup>> groups_;
  KeyRange seen_;  // by some group, and from the kKeyTree of the first of them on
};

}  // namespace triad
