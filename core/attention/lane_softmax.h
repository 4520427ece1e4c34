// Softmax between the two products of the fused kernel, in Highway: maxima and sums go down the columns of a strip, so
// nothing is shuffled, and a row's sum has one order: trees of 8 keys, the trees one after another.
#pragma once

#include <cstdint>

namespace triad {

// The scores of one strip of rows against the keys of one block.
struct ScoreStrip {
  float* scores = nullptr;  // [keys, width], aligned to 64 bytes
  int64_t keys = 0;         // a multiple of 8, from a multiple of 8 on in its block
  int64_t width = 0;        // of the strip
  float factor = 1;         // > 0, finite: a weight is 2^((score - max) * factor)
};

// Sets scores of keys [first, last) to -inf where key < begin[lane] or key >= end[lane]. begin, end: [width], aligned;
// keys counted as the rows of `strip` are.
struct HiddenKeys {
  const int32_t* begin = nullptr;
  const int32_t* end = nullptr;
  int64_t first = 0;
  int64_t last = 0;
};
void HideScores(const ScoreStrip& strip, const HiddenKeys& hidden);

// What is kept of a strip's rows until all keys have been seen, and what the strip's outputs are to be multiplied with
// when a block joins. [width] each, aligned.
struct LaneState {
  float* max = nullptr;   // largest score; -inf: nothing seen
  float* sum = nullptr;   // of weights; NaN: a visible score was NaN or +inf
  float* keep = nullptr;  // factor of the output so far
  float* add = nullptr;   // factor of the block's output
};

// Turns scores into weights in place (-inf: exactly 0), merges the block's maxima and sums into `state`, and sets keep
// and add.
void SoftmaxStrip(const ScoreStrip& strip, const LaneState& state);

// Half of the last place of a bf16, as the bits of an f32: added to those of a weight it rounds it, ties away from
// zero. No weight is so large that it would carry out.
constexpr uint32_t kHalfBf16 = 0x8000;
// Rounds weights to bf16, and puts those of keys 2 i and 2 i + 1 together, the earlier one in the
// lower half: [keys / 2, width], from the same address on.
void PairWeights(const ScoreStrip& strip);

// What a strip's rows have added up to over some keys.
struct StripSums {
  float* output = nullptr;  // [dims, width], aligned
  LaneState state;
};

// Merges `sums` of later keys into `total`, as AddValues merges a block.
void MergeStrip(const StripSums& sums, int64_t dims, int64_t width, float factor, const StripSums& total);

}  // namespace triad
