// One work item of the oneDNN kernel, from packing its queries to storing its rows. Private to onednn_attention.cc.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/attention/attention_kernel.h"
#include "core/attention/item_rows.h"
#include "core/attention/onednn_matmul.h"
#include "core/attention/score_tile.h"
#include "core/attention/tile_geometry.h"
#include "core/attention/tile_operands.h"
#include "core/base/scratch.h"

namespace triad {

// Borrows everything it is given, for the length of one Run; its buffers are in `scratch`.
class OneDnnItem {
 public:
  // What all items of a problem have in common.
  struct Context {
    const TileLayout& layout;
    MatmulCache& products;
    const AttentionProblem& problem;
    const AttentionOutputs& outputs;
  };
  OneDnnItem(const Context& context, const WorkItem& item, Scratch& scratch);

  // Writes the item's part of every output. INTERNAL when oneDNN fails.
  absl::Status Run();

 private:
  // Rows [begin, end) of the item (0 is its first) that share their products, and the keys that some of them sees.
  struct RowTile {
    int64_t begin = 0;
    int64_t end = 0;
    KeyRange keys;

    int64_t rows() const { return end - begin; }
  };
  struct KeyBlock {
    int64_t first_key = 0;
    bool has_non_finite_values = false;
  };
  enum class Product { kScores, kValues };

  // The products of a tile; its columns' visible ranges are set.
  absl::Status MultiplyByKeys(const RowTile& tile, ColumnSpan span);
  absl::Status MultiplyByValues(const RowTile& tile, ColumnSpan span);

  absl::StatusOr<bool> RunBlocks(float value_scale);
  absl::Status AddTile(const KeyBlock& block, const RowTile& tile);
  absl::StatusOr<MatmulCall*> CallFor(Product product, int64_t rows, int64_t width);
  void MakeScoresFinal(const KeyBlock& block, const RowTile& tile, const ScoreTile& scores);

  const TileLayout& layout_;
  MatmulCache& products_;
  const AttentionProblem& problem_;
  const WorkItem& item_;
  Scratch& scratch_;
  ItemRows rows_;
  const int64_t padded_rows_;  // rounded up to kTileRows

  TileOperands operands_;
  float* const scores_;           // [kTileRows, score stride]
  uint16_t* const bf16_weights_;  // [kTileRows, width]; null unless the operands are bf16
  float* const block_output_;     // [kTileRows, v_dims]
  float* const output_;           // [padded_rows, v_dims]
  int32_t* const column_begin_;   // [kTileRows]
  int32_t* const column_end_;     // [kTileRows]
  const RowState total_;          // [padded_rows]
  const RowState block_state_;    // [kTileRows]
  float* const merge_factors_;    // [2 * kTileRows]

  static constexpr size_t kShapes = 2 * std::size(kRowClasses) * std::size(kWidths);
  std::array<std::optional<MatmulCall>, kShapes> calls_;  // made on first use
};

}  // namespace triad
