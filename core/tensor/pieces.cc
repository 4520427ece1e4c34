#include "core/tensor/pieces.h"

#include <algorithm>
#include <cstring>

namespace triad {

void Pieces::Add(const std::byte* data, int64_t size) {
  if (size == 0) return;
  pieces_.push_back({.data = data, .begin = size_});
  size_ += size;
}

size_t Pieces::IndexOf(int64_t at) const {
  const auto next = std::upper_bound(pieces_.begin(), pieces_.end(), at,
                                     [](int64_t byte, const Piece& piece) { return byte < piece.begin; });
  return static_cast<size_t>(next - pieces_.begin()) - 1;
}

Pieces Pieces::Sub(int64_t begin, int64_t count) const {
  Pieces sub;
  ForEach(begin, count, [&](const std::byte* data, int64_t size) { sub.Add(data, size); });
  return sub;
}

void Pieces::CopyTo(int64_t begin, int64_t count, std::byte* to) const {
  ForEach(begin, count, [&](const std::byte* data, int64_t size) {
    std::memcpy(to, data, static_cast<size_t>(size));
    to += size;
  });
}

void Pieces::Place(const Rows& rows, std::byte* spare, const std::byte** places) const {
  size_t piece = 0;
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t begin = rows.begin + i * rows.stride;
    if (i == 0) piece = IndexOf(begin);
    while (EndOf(piece) <= begin) ++piece;
    places[i] = pieces_[piece].data + (begin - pieces_[piece].begin);
    if (begin + rows.row_bytes <= EndOf(piece)) continue;
    CopyTo(begin, rows.row_bytes, spare);
    places[i] = spare;
    spare += rows.row_bytes;
  }
}

const std::byte* Pieces::InPlace(int64_t begin, int64_t count) const {
  if (count == 0) return nullptr;
  const size_t i = IndexOf(begin);
  return begin + count <= EndOf(i) ? pieces_[i].data + (begin - pieces_[i].begin) : nullptr;
}

}  // namespace triad
