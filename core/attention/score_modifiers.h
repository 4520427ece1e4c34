// The rules that change or hide single scores: scale, soft cap, ALiBi, bias, keep. Highway.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "core/tensor/dtype.h"

namespace triad {

// The score of a hidden key, and the largest of no scores.
constexpr float kHiddenScore = -std::numeric_limits<float>::infinity();

// What applies to one row of scores, in this order:
//   score = scale * score
//   score = cap * tanh(score / cap)
//   score -= slope * |distance|
//   score += bias
//   score = -inf where hidden
struct RowModifiers {
  float scale = 1;
  float logit_softcap = 0;           // 0: off
  std::optional<float> alibi_slope;  // unset: off
  int64_t first_distance = 0;  // of the aligned query position from the row's first key; the next key is one nearer
  const std::byte* bias = nullptr;  // of the first key, or null; any alignment; -inf hides
  DType bias_dtype = DType::kF32;
  const std::byte* keep = nullptr;  // of the first key, or null; 0 hides
  // Bytes from this row's bias and keep to those of a row that comes soon, whose entries are fetched ahead; 0: none.
  int64_t bias_ahead_bytes = 0;
  int64_t keep_ahead_bytes = 0;
};

// Applies `modifiers` to scores[0, count) in place. Reads exactly `count` entries of bias and keep. Hidden entries
// become -inf whatever they were.
void ModifyScores(const RowModifiers& modifiers, float* scores, int64_t count);

}  // namespace triad
