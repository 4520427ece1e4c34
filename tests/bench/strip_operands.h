// Operands of the fused kernel's parts, as an item of many rows has them: keys and values of a block, and for each of
// its strips queries, running sums and outputs, all of that in L2; one strip's scores in L1.
#pragma once

#include <cstdint>
#include <vector>

#include "core/attention/fused_geometry.h"
#include "core/attention/lane_softmax.h"
#include "core/base/scratch.h"

namespace triad {

// One thread's. Seeded contents.
class StripOperands {
 public:
  // Of an item of `rows` rows, heads of `dims`.
  StripOperands(int64_t rows, int64_t dims);

  // Each of these does its part once for every strip against a block of keys.
  void MultiplyKeys();
  // In place, again and again: the weights of one time are the scores of the next. Its time does not depend on them.
  void Softmax();
  void AddValues();

  // (row, key) that each of them computes, rows that fill a strip included.
  double pairs() const;

  // Whether the last strip's scores, weights, sums and outputs are what plain loops in f64 make of it. Leaves the
  // operands as they were made.
  bool IsRight();

 private:
  // Two blocks, by turns: an item's products take keys and values by turns.
  const float* BlockOf(const float* rows, size_t strip) const {
    return rows + static_cast<int64_t>(strip % 2) * kFusedKeyBlock * dims_;
  }
  LaneState StateOf(const RowStrip& strip) const;
  void MultiplyKeysOf(size_t strip);
  void SoftmaxOf(size_t strip);
  void AddValuesOf(size_t strip);
  void Clear();
  bool ScoresAreRight(size_t strip) const;
  bool WeightsAreRight(size_t strip, const std::vector<float>& scores) const;
  bool OutputIsRight(size_t strip) const;

  const int64_t dims_;
  const std::vector<RowStrip> strips_;
  const int64_t rows_;  // of all strips
  const float factor_;
  Scratch scratch_;
  float* const keys_;      // [2 * kFusedKeyBlock, dims]
  float* const values_;    // likewise
  float* const queries_;   // [rows_, dims], each strip's transposed: [dims, width]
  float* const outputs_;   // likewise
  float* const scores_;    // [kFusedKeyBlock, widest strip]
  const LaneState state_;  // of rows_; keep and add are halves, so that outputs stay bounded
};

}  // namespace triad
