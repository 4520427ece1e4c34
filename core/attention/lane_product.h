// The two products of the fused kernel, in Highway. A strip of rows stands in the lanes of one to three vectors, so
// both products read keys and values one number at a time, in place and at any stride, and need nothing packed but the
// queries. Every element of a result is one chain of fused multiply-adds in the order of what is summed over: its bytes
// depend on its own row alone, not on the strip, nor on the width of vectors.
//
// Where the CPU multiplies pairs of bf16, a number below may be such a pair in the bits of a float: of two dims that
// follow each other for scores, of two keys for outputs. Then dims, or keys, are counted in pairs.
#pragma once

#include <cstdint>

#include "core/attention/fetch_list.h"
#include "core/base/cpu.h"

namespace triad {

// What the vectors of this machine hold.
struct StripShape {
  int64_t unit = 0;              // lanes that a strip is a multiple of: a vector, at least 8
  int64_t most_units = 0;        // of one strip
  bool multiplies_bf16 = false;  // pairs of them, at twice the pace of f32
};
// Of a machine whose instruction set is `isa`.
StripShape StripShapeOf(InstructionSet isa);

// scores [keys, width] = keys [keys, dims] * queries [dims, width]
struct ScoreProduct {
  bool bf16_pairs = false;
  const float* keys = nullptr;  // any multiple of 4 bytes
  int64_t key_stride = 0;
  int64_t key_count = 0;
  const float* queries = nullptr;  // [dims, width], aligned to 64 bytes
  int64_t dims = 0;
  int64_t width = 0;           // of the strip
  float* scores = nullptr;     // [key_count, width], aligned
  FetchList* ahead = nullptr;  // half of it is fetched meanwhile; null: nothing
};
void MultiplyKeys(const ScoreProduct& product);

// output [dims, width] = output * keep + (values, transposed, [dims, keys] * weights [keys, width]) * add
struct ValueProduct {
  bool bf16_pairs = false;        // values and weights
  const float* values = nullptr;  // [keys, dims], any multiple of 4 bytes; finite
  int64_t value_stride = 0;
  int64_t key_count = 0;
  const float* weights = nullptr;  // [keys, width], aligned
  int64_t dims = 0;
  int64_t width = 0;
  const float* keep = nullptr;  // [width] each, aligned: what the running output and this one count
  const float* add = nullptr;
  float* output = nullptr;     // [dims, width], aligned
  FetchList* ahead = nullptr;  // all of it is fetched meanwhile; null: nothing
};
void AddValues(const ValueProduct& product);

}  // namespace triad
