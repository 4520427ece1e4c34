// The rows of several requests side by side, as the products of a batch see them: numbered without gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/scratch.h"
#include "core/layer/projection.h"
#include "core/tensor/dtype.h"

namespace triad {

// Rows that lie one after another in memory.
struct RowSegment {
  int64_t first = 0;                  // number of its first row in the batch
  int64_t rows = 0;                   // > 0
  const std::byte* source = nullptr;  // its first row; any alignment
  DType dtype = DType::kF32;          // of source and reply
  std::byte* reply = nullptr;         // where the layer's output for its first row goes; any alignment
  int64_t position = 0;               // of its first row, for the rotary embedding
};

class SharedRows {
 public:
  // Source rows have `width` elements that count and lie `stride` elements apart; those between are zeros or not there.
  SharedRows(int64_t width, int64_t stride) : width_(width), stride_(stride) {}

  // `segment.first` is set here.
  void Add(RowSegment segment);

  int64_t width() const { return width_; }
  int64_t stride() const { return stride_; }
  int64_t count() const { return count_; }

  // The segment of row `row` < count().
  const RowSegment& SegmentOf(int64_t row) const;

 private:
  const int64_t width_;
  const int64_t stride_;
  int64_t count_ = 0;
  std::vector<RowSegment> segments_;  // by first
};

// Some rows of a batch: [first, first + count), which a product computes with zeros up to `padded_count`.
struct TileRows {
  int64_t first = 0;
  int64_t count = 0;
  int64_t padded_count = 0;
};

// The rows as `projection` multiplies them: where they lie when they lie so already, else in `scratch`.
const std::byte* GatherOperand(const SharedRows& rows, const TileRows& tile, const Projection& projection,
                               Scratch& scratch);

}  // namespace triad
