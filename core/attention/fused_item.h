// One work item of the fused kernel, from packing its queries to storing its rows. Private to fused_attention.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "core/attention/attention_kernel.h"
#include "core/attention/block_rows.h"
#include "core/attention/fused_geometry.h"
#include "core/attention/lane_softmax.h"
#include "core/attention/row_scores.h"
#include "core/attention/tile_outputs.h"
#include "core/base/scratch.h"

namespace triad {

// Borrows everything it is given, for the length of one Run; its buffers are in `scratch`.
class FusedItem {
 public:
  FusedItem(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
            const StripShape& shape, Scratch& scratch);

  // Writes the item's part of every output.
  void Run();

 private:
  // A strip, and the keys that its rows see: some of them `seen`, all of them `shared`.
  struct Strip {
    RowStrip rows;
    KeyRange seen;
    KeyRange shared;
  };
  // Keys [begin, end) that a strip computes of a block, from a multiple of kKeyTree on.
  struct StripBlock {
    KeyRange keys;
    BlockRows rows;  // from keys.begin on
  };

  Strip StripOf(const RowStrip& rows) const;
  void PackQueries();
  void PackStrip(const RowStrip& rows);
  // The first of these rows that counts, with those after it that lie a stride apart.
  SourceRows QueriesOf(const RowStrip& rows) const;
  bool RunBlocks(ReadValues values);
  void AddBlock(const Strip& strip, const StripBlock& block);
  void ModifyScores(const Strip& strip, const ScoreStrip& scores, int64_t first_key);
  void HideKeys(const Strip& strip, const ScoreStrip& scores, int64_t first_key);
  void AddNonFiniteValues(const Strip& strip, const StripBlock& block);
  void FinishStrip(const RowStrip& rows, float value_scale);

  // Blocks are named by their first position; of its keys, those that may be read and that some strip sees or nearly.
  int64_t FirstBlock() const;
  KeyRange KeysOfBlock(int64_t first) const;
  LaneState StateOf(int64_t row) const;

  const AttentionProblem& problem_;
  const Sequence& sequence_;
  const WorkItem& item_;
  Scratch& scratch_;
  const int64_t rows_;
  const int64_t query_dims_;  // qk_head_dim and v_head_dim, rounded up to kPackedStep
  const int64_t output_dims_;
  const RowScores row_scores_;
  TileOutputs outputs_;
  BlockReader reader_;
  std::vector<Strip> strips_;
  KeyRange seen_;      // by some strip
  int64_t lanes_ = 0;  // of all strips

  float* queries_ = nullptr;         // [query_dims_, width] of each strip, from strip.begin * query_dims_ on
  float* output_ = nullptr;          // [output_dims_, width] likewise
  float* non_finite_ = nullptr;      // [rows, output_dims_]; null until some visible value is not finite
  float* scores_ = nullptr;          // [kFusedKeyBlock, widest strip]
  float* rows_of_scores_ = nullptr;  // [widest strip, kScoreStride]; null unless scores are modified or asked for
  float* rows_of_strip_ = nullptr;   // [widest strip, query_dims_ or output_dims_]
  KeyRange* row_keys_ = nullptr;     // [lanes_]
  int32_t* first_key_ = nullptr;     // [widest strip]: of a block, what a lane sees
  int32_t* end_key_ = nullptr;       // [widest strip]: past the last
  LaneState state_;                  // [lanes_] each
};

}  // namespace triad
