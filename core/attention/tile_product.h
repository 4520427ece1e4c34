// The two f32 products of a tile, in Highway. Every element of a result is one chain of fused multiply-adds in the
// order of the dimension that is summed over, so its bytes depend on its own row and column alone: not on how many rows
// there are, nor on what else is skipped.
#pragma once

#include <cstdint>

namespace triad {

// result [rows, columns] = left [rows, depth] * right [depth, columns], row-major with strides in elements. columns is
// a multiple of 16, `right` and `result` are aligned to 64 bytes, and so are their strides.
struct TileProduct {
  const float* left = nullptr;
  int64_t left_stride = 0;
  const float* right = nullptr;
  int64_t right_stride = 0;
  float* result = nullptr;
  int64_t result_stride = 0;
  int64_t rows = 0;
  int64_t depth = 0;
  int64_t columns = 0;
  // [rows] each: the keys [begin, end) that a row sees. Keys are the columns of scores and the depth of outputs.
  const int32_t* begin = nullptr;
  const int32_t* end = nullptr;
};

// Scores: columns that a row does not see may be computed or left as they were.
void MultiplyKeys(const TileProduct& product);

// Outputs: `left` is exact zeros where a row does not see; such zeros may be multiplied (`right` is finite) or skipped.
void MultiplyValues(const TileProduct& product);

}  // namespace triad
