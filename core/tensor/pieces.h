// Bytes that a transport delivered in pieces of memory, to be read where they lie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace triad {

// Borrows the pieces; together, in the order they are added, they are one run of bytes.
class Pieces {
 public:
  void Add(const std::byte* data, int64_t size);

  int64_t size() const { return size_; }

  // Bytes [begin, begin + count), which must be there, as do all that follow.
  Pieces Sub(int64_t begin, int64_t count) const;
  void CopyTo(int64_t begin, int64_t count, std::byte* to) const;
  // Where they lie, if in one piece; else null.
  const std::byte* InPlace(int64_t begin, int64_t count) const;

  // `count` rows of `row_bytes`, `stride` apart, the first at byte `begin`. All must be there.
  struct Rows {
    int64_t begin = 0;
    int64_t stride = 0;
    int64_t row_bytes = 0;
    int64_t count = 0;
  };
  // places [count] = where each row begins. A row that lies in more than one piece is copied to `spare`
  // [count * row_bytes].
  void Place(const Rows& rows, std::byte* spare, const std::byte** places) const;

  // Calls visit(const std::byte* data, int64_t size) for each piece of those bytes, in order.
  template <class Visit>
  void ForEach(int64_t begin, int64_t count, Visit visit) const {
    for (size_t i = count > 0 ? IndexOf(begin) : pieces_.size(); count > 0; ++i) {
      const int64_t offset = begin - pieces_[i].begin;
      const int64_t taken = std::min(count, EndOf(i) - begin);
      visit(pieces_[i].data + offset, taken);
      begin += taken;
      count -= taken;
    }
  }

 private:
  struct Piece {
    const std::byte* data;
    int64_t begin;  // of it among all bytes
  };
  // Of the piece that holds byte `at`.
  size_t IndexOf(int64_t at) const;
  int64_t EndOf(size_t i) const { return i + 1 < pieces_.size() ? pieces_[i + 1].begin : size_; }

  std::vector<Piece> pieces_;  // none is empty
  int64_t size_ = 0;
};

}  // namespace triad
