// Rotary position embedding (Su et al. 2021, arXiv:2104.09864): the sines and cosines of a position, and the turn.
//
// A layer computes the dims of a head in an order where both of a pair stand side by side, whatever its weights have:
// scores are sums over the dims, in which the order is free. So there is one kind of pair here, and no block of columns
// that begins at an even one can part a pair.
#pragma once

#include <cstdint>
#include <vector>

#include "core/layer/layer_spec.h"

namespace triad {

// Largest position offset. Past it an angle in f64 loses more than 1e-4 of a turn; nobody counts so far.
inline constexpr int64_t kMaxPositionOffset = int64_t{1} << 40;

class RotaryTable {
 public:
  // `spec` is valid and spec.dim > 0. Takes some 5 ms for 64 dims. Throws std::bad_alloc.
  explicit RotaryTable(const RotarySpec& spec);

  int64_t dim() const { return 2 * pairs_; }
  int64_t pairs() const { return pairs_; }

  // Which dim of a head, as the weights have it, is computed as dim `i` (< the head's width).
  int64_t SourceDim(int64_t i) const;

  // cosines, sines [pairs]: of position * inverse frequency, in f64, times the attention factor, rounded to f32.
  // A function of the position alone. 0 <= position <= 2 * kMaxPositionOffset.
  void SinesAndCosines(int64_t position, float* cosines, float* sines) const;

 private:
  struct Turn {
    double cosine = 1;
    double sine = 0;
  };

  // Positions are written as high * kLow + low and the two turns multiplied, because a sine in f64 takes 40 ns.
  static constexpr int64_t kLow = 256;
  // Turns of high parts kept: positions up to 262144 cost no sine at all. 640 KiB with the low parts, at 64 dims.
  static constexpr int64_t kHigh = 1024;

  Turn TurnOf(int64_t position, int64_t pair) const;

  const int64_t pairs_;
  const RotaryPairs order_;
  const double attention_factor_;
  std::vector<double> inverse_frequencies_;  // [pairs]
  std::vector<Turn> low_turns_;              // [kLow, pairs]: of positions 0 .. kLow - 1
  std::vector<Turn> high_turns_;             // [kHigh, pairs]: of multiples of kLow
};

// Turns `pairs` pairs of neighbours: (x, y) becomes (x cos - y sin, y cos + x sin).
void RotatePairs(const float* cosines, const float* sines, int64_t pairs, float* dims);

}  // namespace triad
