// The last rows of one sequence of an Attend, small enough to be computed again.
#pragma once

#include <cstdint>
#include <vector>

#include "client/tools/bench/workload.h"
#include "core/tensor/dtype.h"
#include "triad/attend.h"

namespace triad::tools {

// All is widened to f32, which is exact. Aligned BOTTOM_RIGHT, so the last rows are a problem of their own.
struct AttentionRows {
  int64_t rows = 0;
  int64_t kv_len = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t qk_head_dim = 0;
  int64_t v_head_dim = 0;
  bool causal = false;
  std::vector<float> query;   // [rows, heads, qk_head_dim]
  std::vector<float> key;     // [kv_len, kv_heads, qk_head_dim]
  std::vector<float> value;   // [kv_len, kv_heads, v_head_dim]
  std::vector<uint8_t> keep;  // [rows, kv_len]; empty: all

  bool IsVisible(int64_t row, int64_t column) const {
    if (causal && column > row + kv_len - rows) return false;
    return keep.empty() || keep[static_cast<size_t>(row * kv_len + column)] != 0;
  }
};

// Takes the last `rows` of sequence `sequence` out of a request, all in layout TOKENS_HEADS.
AttentionRows LastRows(const client::AttendRequest& request, int64_t sequence, int64_t rows);

// The same question as a request for kernel REFERENCE. Borrows from `rows`.
client::AttendRequest ReferenceRequest(const AttentionRows& rows);

// What one would write without care for memory: scores and softmax in f32, weights rounded to `dtype` before the value
// product, sums in f32, output rounded. [rows, heads, v_head_dim]. A row that sees nothing is 0.
std::vector<float> NaiveOutput(const AttentionRows& rows, DType dtype);

// The largest scale * sum |q_i k_i| over visible pairs: a logit of that size cannot be rounded better than eps times
// it.
double LargestLogit(const AttentionRows& rows);

// How far `output` is from `truth` (both [rows, heads, v_head_dim]), as a multiple of what README.md, "Numbers", allows
// for `dtype`: at most 1 is right. Infinite where one of the two is not finite.
double ExcessError(const AttentionRows& rows, DType dtype, const std::vector<float>& output,
                   const std::vector<float>& truth);

}  // namespace triad::tools
