// From sums of f32 to rows of an answer: scaled, rounded to its type, at any address. Highway.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/dtype.h"

namespace triad {

// Sums of a row of output. Both are aligned to 64 bytes and readable up to dims rounded up to kPackedStep.
struct OutputRow {
  const float* sums = nullptr;
  const float* added = nullptr;  // null: nothing
  int64_t dims = 0;
};

// Where a row of output goes.
struct OutputPlace {
  std::byte* stored = nullptr;  // any alignment; null: nowhere
  float factor = 1;
};

// stored[i] = sums[i] * factor + added[i], rounded to `dtype` (to nearest even). With a factor of 0 no sum counts, not
// even NaN. A sum of -0 counts as +0, and every NaN is the same one: which they would be may depend on how the sum was
// added up.
void StoreOutputRow(const OutputRow& row, OutputPlace place, DType dtype);

// The same of rows that are columns.
struct OutputColumns {
  const float* sums = nullptr;          // [dims rounded up to kPackedStep, width]
  const float* added = nullptr;         // [columns that have a place, dims rounded up to kPackedStep]; null: nothing
  const OutputPlace* places = nullptr;  // [width]
  int64_t dims = 0;
  int64_t width = 0;  // a multiple of 4
};
void StoreOutputColumns(const OutputColumns& columns, DType dtype);

}  // namespace triad
