// Rows of a work item of the fused kernel that meet the blocks of keys together.
#pragma once

#include "core/attention/attention_problem.h"
#include "core/attention/block_rows.h"
#include "core/attention/fetch_list.h"

namespace triad {

class RowGroup {
 public:
  virtual ~RowGroup() = default;

  // Keys that some of the rows sees.
  virtual KeyRange seen() const = 0;
  // Forgets all blocks.
  virtual void Start() = 0;
  // Adds a block's part of `keys`, which begin at a multiple of kKeyTree, and fetches what is `ahead` meanwhile.
  virtual void AddBlock(KeyRange keys, const BlockRows& block, FetchList& ahead) = 0;
  // Adds to `list` what AddBlock of `keys` will read of the request beside them.
  virtual void ListReads(KeyRange keys, FetchList& list) const = 0;
  // Merges what the blocks since Start, or since the last call, add up to, into the total. Needed only where blocks of
  // more than one chunk are met (fused_geometry.h).
  virtual void EndChunk() = 0;
  // What the blocks since Start add up to, as numbers: stored, and merged into the total as EndChunk would have.
  virtual int64_t chunk_floats() const = 0;
  virtual void StoreChunk(float* result) const = 0;
  virtual void AddChunk(const float* result) = 0;
  // Whether all sums so far are numbers.
  virtual bool IsFinite() const = 0;
  // Writes everything of the rows. Values were read multiplied by `value_scale`.
  virtual void Finish(float value_scale) = 0;
};

}  // namespace triad
