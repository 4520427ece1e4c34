// Bytes as a transport may deliver them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/tensor/pieces.h"

namespace triad {

// Owns a copy of some bytes in pieces, each in memory of its own: who reads past one is found.
class CutPieces {
 public:
  // `next_size` says how long the next piece is, >= 1; the last may be shorter.
  template <class NextSize>
  CutPieces(const std::byte* data, int64_t bytes, NextSize next_size) {
    for (int64_t begin = 0, count = 0; begin < bytes; begin += count) {
      count = std::min(bytes - begin, next_size());
      memory_.emplace_back(data + begin, data + begin + count);
      pieces_.Add(memory_.back().data(), count);
    }
  }

  CutPieces(const CutPieces&) = delete;
  CutPieces& operator=(const CutPieces&) = delete;

  const Pieces& get() const { return pieces_; }

 private:
  std::vector<std::vector<std::byte>> memory_;
  Pieces pieces_;
};

}  // namespace triad
