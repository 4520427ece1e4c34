// Rows of a work item of the fused kernel that meet the blocks of keys together, and what they add up to.
#pragma once

#include <cstdint>
#include <vector>

#include "core/attention/attention_problem.h"
#include "core/attention/block_rows.h"
#include "core/attention/fetch_list.h"
#include "core/attention/score_tile.h"
#include "core/base/scratch.h"

namespace triad {

// What the rows of a group have added up to over some keys: max, sum and output, one after the other in one piece of
// memory, each aligned to 64 bytes.
struct RowSums {
  RowState state;
  float* output = nullptr;  // [rows, dims] or [dims, rows], whichever the group computes
};

class RowGroup {
 public:
  virtual ~RowGroup() = default;

  // Keys that some of the rows sees.
  virtual KeyRange seen() const = 0;
  // Forgets all blocks.
  void Start();
  // Adds a block's part of `keys`, which begin at a multiple of kKeyTree, and fetches what is `ahead` meanwhile.
  virtual void AddBlock(KeyRange keys, const BlockRows& block, FetchList& ahead) = 0;
  // Adds to `list` what AddBlock of `keys` will read of the request beside them.
  virtual void ListReads(KeyRange keys, FetchList& list) const = 0;
  // Merges what the blocks since Start, or since the last call, add up to, into the total. Needed only where blocks of
  // more than one chunk are met (fused_geometry.h).
  void EndChunk();
  // A part of the keys, of `blocks` blocks and computed by itself (split_rows.h), leaves so many numbers in `result`:
  // they are there when the blocks between Begin and End have been added, and a group of the same rows adds them as
  // those blocks.
  virtual int64_t part_floats(int64_t blocks) const { return sums_floats(); }
  virtual void BeginPart(float* result) { part_ = result; }
  virtual void EndPart();
  virtual void AddPart(const float* result, int64_t blocks);
  // Whether all sums so far are numbers.
  bool IsFinite() const;
  // Holds the sums of those rows in which all are numbers: Finish writes these, whatever is added up from then on.
  void HoldNumbers();
  // Writes everything of the rows. Values were read multiplied by `value_scale`, but for what is held.
  void Finish(float value_scale);

 protected:
  // Of `rows` rows. Borrows `scratch`, which holds their sums.
  RowGroup(int64_t rows, int64_t v_head_dim, Scratch& scratch);

  int64_t output_dims() const { return output_dims_; }
  int64_t sums_floats() const { return 2 * state_rows_ + output_floats_; }
  RowSums NewSums() const;  // uninitialised
  void Clear(const RowSums& sums) const;
  bool IsHeld(int64_t row) const { return !is_held_.empty() && is_held_[static_cast<size_t>(row)]; }
  // Where AddBlock adds.
  const RowSums& chunk() const { return chunk_; }

 private:
  // Of all blocks, once the last chunk has ended.
  const RowSums& total() const { return total_.output == nullptr ? chunk_ : total_; }
  // Whether all outputs of `row` in `sums` are numbers.
  virtual bool IsFinite(const RowSums& sums, int64_t row) const = 0;
  // Writes everything of the rows that are `held`, or of the others.
  virtual void FinishRows(bool held, const RowSums& sums, float value_scale) = 0;
  // Merges `sums` of later keys into `total`.
  virtual void Merge(const RowSums& sums, const RowSums& total) const = 0;

  Scratch& scratch_;
  const int64_t rows_;
  const int64_t output_dims_;  // v_head_dim rounded up to kPackedStep
  const int64_t output_floats_;
  const int64_t state_rows_;  // rounded up to what RowState asks for
  const RowSums chunk_;
  float* part_ = nullptr;  // where the part goes
  RowSums total_;          // of the chunks that have ended; made when the first does
  RowSums held_;
  std::vector<bool> is_held_;  // [rows]; empty: none is
};

}  // namespace triad
