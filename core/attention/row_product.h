// What the fused kernel computes for a few rows, in Highway: keys stand in the lanes of scores, dims in those of
// outputs. Keys and values are read once and in order, as fast as memory gives them. All sums have the order of
// lane_product.h and lane_softmax.h, and so the same bytes.
#pragma once

#include <cstdint>

#include "core/attention/pack_tile.h"

namespace triad {

constexpr int64_t kFewRows = 4;

// scores [rows, keys] = queries [rows, dims] * keys [keys, dims], transposed
struct RowScoreProduct {
  const float* keys = nullptr;  // any multiple of 4 bytes
  int64_t key_stride = 0;
  int64_t key_count = 0;
  const float* queries = nullptr;
  int64_t query_stride = 0;
  int64_t dims = 0;
  int64_t rows = 0;          // 1 to kFewRows
  float* scores = nullptr;   // key_count of each row are set, and those up to a multiple of 8 to anything
  int64_t score_stride = 0;  // at least key_count rounded up so
  SourceRows next;           // keys of the next block, brought nearer meanwhile
};
void MultiplyKeysByRows(const RowScoreProduct& product);

// output [rows, dims] = weights [rows, keys] * values [keys, dims]
struct RowValueProduct {
  const float* values = nullptr;  // any multiple of 4 bytes; finite
  int64_t value_stride = 0;
  int64_t key_count = 0;
  const float* weights = nullptr;
  int64_t weight_stride = 0;
  int64_t dims = 0;
  int64_t rows = 0;  // 1 to kFewRows
  float* output = nullptr;
  int64_t output_stride = 0;
  SourceRows next;  // values of the next block, brought nearer meanwhile
};
void MultiplyValuesByRows(const RowValueProduct& product);

// Turns scores [count], a multiple of 8, into weights in place (-inf: exactly 0).
struct RowMaxAndSum {
  float max = 0;  // -inf: nothing seen
  float sum = 0;  // NaN: a score was NaN or +inf
};
RowMaxAndSum SoftmaxOfRow(float* scores, int64_t count, float factor);

}  // namespace triad
