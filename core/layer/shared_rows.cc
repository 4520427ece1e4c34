#include "core/layer/shared_rows.h"

#include <algorithm>
#include <cstring>

#include "core/attention/pack_tile.h"
#include "core/attention/store_output.h"

namespace triad {
namespace {

// Whether a product can read the rows in place.
bool LiesAsOperand(const SharedRows& rows, const RowSegment& segment, const TileRows& tile,
                   const Projection& projection) {
  const int64_t element_bytes = ByteSize(segment.dtype);
  return segment.dtype == projection.operand_dtype() && segment.dtype == projection.compute() &&
         rows.stride() == projection.operand_stride() && tile.count == tile.padded_count &&
         tile.first + tile.count <= segment.first + segment.rows &&
         reinterpret_cast<uintptr_t>(segment.source) % static_cast<uintptr_t>(element_bytes) == 0;
}

// Packs rows that are not bf16 for a projection that computes in it: rounded, and kept so or widened again.
void PackRounded(const SourceRows& rows, const Projection& projection, Scratch& scratch, std::byte* packed) {
  const int64_t stride = projection.operand_stride();
  auto* row = scratch.Allocate<float>(stride);
  auto* rounded = scratch.Allocate<std::byte>(stride * 2);
  for (int64_t r = 0; r < rows.count; ++r) {
    SourceRows source = rows;
    source.data += r * rows.stride_bytes;
    source.count = 1;
    PackRows(source, row);
    std::byte* operand = packed + r * projection.operand_row_bytes();
    const bool keeps = projection.operand_dtype() == DType::kBf16;
    StoreOutputRow({.sums = row, .dims = stride}, {.stored = keeps ? operand : rounded}, DType::kBf16);
    if (keeps) continue;
    PackRows({.data = rounded, .count = 1, .dtype = DType::kBf16, .dims = stride}, reinterpret_cast<float*>(operand));
  }
}

}  // namespace

void SharedRows::Add(RowSegment segment) {
  segment.first = count_;
  count_ += segment.rows;
  segments_.push_back(segment);
}

const RowSegment& SharedRows::SegmentOf(int64_t row) const {
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), row,
                                      [](int64_t wanted, const RowSegment& segment) { return wanted < segment.first; });
  return *(after - 1);
}

const std::byte* GatherOperand(const SharedRows& rows, const TileRows& tile, const Projection& projection,
                               Scratch& scratch) {
  const auto address_of = [&](const RowSegment& segment, int64_t row) {
    return segment.source + (row - segment.first) * rows.stride() * ByteSize(segment.dtype);
  };
  const RowSegment& first = rows.SegmentOf(tile.first);
  if (LiesAsOperand(rows, first, tile, projection)) return address_of(first, tile.first);

  auto* operand = scratch.Allocate<std::byte>(tile.padded_count * projection.operand_row_bytes());
  std::byte* packed = operand;
  for (int64_t row = tile.first; row < tile.first + tile.count;) {
    const RowSegment& segment = rows.SegmentOf(row);
    const int64_t end = std::min(segment.first + segment.rows, tile.first + tile.count);
    const SourceRows source{.data = address_of(segment, row),
                            .stride_bytes = rows.stride() * ByteSize(segment.dtype),
                            .count = end - row,
                            .dtype = segment.dtype,
                            .dims = rows.width()};
    if (projection.compute() == DType::kBf16 && segment.dtype != DType::kBf16) {
      PackRounded(source, projection, scratch, packed);
    } else if (projection.operand_dtype() == DType::kBf16) {
      PackBf16Rows(source, reinterpret_cast<uint16_t*>(packed));
    } else {
      PackRows(source, reinterpret_cast<float*>(packed));
    }
    packed += (end - row) * projection.operand_row_bytes();
    row = end;
  }
  std::memset(packed, 0, static_cast<size_t>((tile.padded_count - tile.count) * projection.operand_row_bytes()));
  return operand;
}

}  // namespace triad
