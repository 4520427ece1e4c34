// What the fused kernel computes for a few rows, in Highway: keys stand in the lanes of scores, dims in those of
// outputs. Keys and values are read once and in order, as fast as memory gives them. All sums have the order of
// lane_product.h and lane_softmax.h, and so the same bytes.
#pragma once

#include <cstdint>

#include "core/attention/fetch_list.h"

namespace triad {

constexpr int64_t kFewRows = 4;

// Kv heads whose keys, and values, lie one behind the other in each token: a few tokens are read whole before the next
// ones, or memory would be read in pieces of one head.
struct HeadsTogether {
  int64_t count = 1;
  int64_t stride_bytes = 0;  // from one head's to the next's
};

// For each kv head: scores [rows, keys] = queries [rows, dims] * keys [keys, dims], transposed
struct RowScoreProduct {
  bool bf16_pairs = false;  // keys are bf16, and queries pairs of them (lane_product.h)
  SourceRows keys;          // of any type, anywhere; the first head's
  HeadsTogether heads;
  const float* queries = nullptr;  // [heads, rows, query_stride]; zeros up to a multiple of 16 dims
  int64_t query_stride = 0;
  int64_t rows = 0;            // of a head, 1 to kFewRows
  float* scores = nullptr;     // [heads, rows, score_stride]; those up to a multiple of 8 keys are set to anything
  int64_t score_stride = 0;    // at least the keys rounded up so
  FetchList* ahead = nullptr;  // all of it is fetched meanwhile; null: rows are read in order before they are used
};
void MultiplyKeysByRows(const RowScoreProduct& product);

// For each kv head: output [rows, dims] = weights [rows, keys] * values [keys, dims]
struct RowValueProduct {
  bool bf16_pairs = false;  // values are bf16, and weights pairs of them, of two keys each
  SourceRows values;        // of any type, anywhere; the first head's
  HeadsTogether heads;
  const float* weights = nullptr;  // [heads, rows, weight_stride]
  int64_t weight_stride = 0;
  int64_t rows = 0;         // of a head, 1 to kFewRows
  float* output = nullptr;  // [heads, rows, output_stride]
  int64_t output_stride = 0;
  FetchList* ahead = nullptr;  // all of it is fetched meanwhile; null: rows are read in order before they are used
};
void MultiplyValuesByRows(const RowValueProduct& product);

// Turns scores [count], a multiple of 8, into weights in place (-inf: exactly 0).
struct RowMaxAndSum {
  float max = 0;  // -inf: nothing seen
  float sum = 0;  // NaN: a score was NaN or +inf
};
RowMaxAndSum SoftmaxOfRow(float* scores, int64_t count, float factor);

// As PairWeights, of one row: its first count / 2 numbers become the pairs.
void PairWeightsOfRow(float* weights, int64_t count);

}  // namespace triad
