// Softmax between the two products of a tile, in Highway. A weight is 2^((score - max) * factor): the factor holds what
// is left of the scale, and log2(e). The difference comes first: it is exact near the maximum however large the scores
// are.
#pragma once

#include <cstdint>

#include "core/base/cpu.h"

namespace triad {

// One tile of scores: `rows` queries by `width` keys of one key block.
struct ScoreTile {
  float* scores = nullptr;  // [rows, stride]
  int64_t stride = 0;
  int64_t rows = 0;
  int64_t width = 0;               // multiple of 16
  const int32_t* begin = nullptr;  // [rows] first column that the row may see
  const int32_t* end = nullptr;    // [rows] past the last; begin == end: none
  float factor = 1;                // > 0, finite
};

// What softmax keeps of a row until all its keys have been seen.
struct RowState {
  float* max = nullptr;  // [rows, rounded up to 16] largest score; -inf: nothing seen
  float* sum = nullptr;  // [rows, rounded up to 16] sum of weights; NaN: a visible score was NaN or +inf
};

// Turns each row's scores in [begin, end) into weights, in place, all other columns below width into
// exact zeros, and writes the row's max and sum. Scores outside [begin, end) are not read as values. A score of -inf
// has weight 0.
void SoftmaxRows(const ScoreTile& tile, const RowState& state);

// The first `width` columns of each row, rounded to bf16 (to nearest even), densely [rows, width].
void RoundRowsToBf16(const ScoreTile& tile, uint16_t* rounded);

// Merges a block's result into the running one: both are scaled to the larger maximum and added.
//   total, block: [rows, dims]; dims a multiple of 16.
struct MergeTile {
  float* total = nullptr;
  const float* block = nullptr;
  int64_t rows = 0;
  int64_t dims = 0;
  float factor = 1;
  RowState total_state;
  RowState block_state;
  float* factors = nullptr;  // [2 * rows rounded up to 16], scratch
};
void MergeRows(const MergeTile& tile);

// scores[j] = 2^((scores[j] - max) * factor) * scale. Any alignment.
struct WeightRow {
  float* scores = nullptr;
  int64_t count = 0;
  float factor = 1;
  float max = 0;
  float scale = 1;
};
void NormalizeWeights(const WeightRow& row);

// Keeps every vectorised file of this folder below instruction sets past `isa`, for the whole process.
void CapVectorTargets(InstructionSet isa);

}  // namespace triad
