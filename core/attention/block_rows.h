// The keys and values of one block as the fused kernel's products read them: where they lie in the request if that
// will do, else packed.
#pragma once

#include <cstdint>

#include "core/attention/attention_kernel.h"
#include "core/attention/attention_problem.h"
#include "core/attention/pack_tile.h"
#include "core/base/scratch.h"

namespace triad {

// f32 rows from the block's first key on, strides in elements.
struct BlockRows {
  const float* keys = nullptr;
  int64_t key_stride = 0;
  const float* values = nullptr;
  int64_t value_stride = 0;
  ValueTraits value_traits;  // unless kAsTheyAre
};

// Rows of the request, as they are.
struct BlockSource {
  SourceRows keys;
  SourceRows values;
};

// Brings them nearer.
inline void FetchBlock(const BlockSource& block) {
  FetchRows(block.keys);
  FetchRows(block.values);
}

enum class ReadValues {
  kAsTheyAre,
  kFinite,  // those that are not are read as 0
  kScaled,  // so are they, and the others multiplied by kHugeValueScale
};

// Borrows `problem` and `item`; its buffers are in the scratch it is given, valid until that is Reset.
class BlockReader {
 public:
  // For blocks of at most `block_keys` keys.
  BlockReader(const AttentionProblem& problem, const WorkItem& item, int64_t block_keys, Scratch& scratch);

  // Reads keys and values [keys.begin, keys.end), nothing else. What it returns is valid until the next call.
  BlockRows Read(KeyRange keys, ReadValues values);

  // Where keys and values [keys.begin, keys.end) lie, for whoever wants them nearer before they are read.
  BlockSource SourceOf(KeyRange keys) const;

 private:
  SourceRows RowsOf(const HeadRows& rows, int64_t begin, int64_t dims, KeyRange keys) const;
  bool ReadsInPlace(const SourceRows& rows) const;

  const AttentionProblem& problem_;
  const Sequence& sequence_;
  const WorkItem& item_;
  Scratch& scratch_;
  const int64_t block_keys_;
  float* keys_ = nullptr;    // [block_keys, qk_head_dim rounded up]; made when first needed
  float* values_ = nullptr;  // [block_keys, v_head_dim rounded up]
};

}  // namespace triad
