// Keys and values that came in pieces, copied together for a kernel that does not read them there.
#pragma once

#include <cstdint>
#include <mutex>

#include "core/attention/attention_problem.h"
#include "core/base/aligned_bytes.h"
#include "core/tensor/pieces.h"

namespace triad {

class GatheredRows {
 public:
  // Takes from `problem` the pieces of its keys and values, where they are in some; until PutInto they are nowhere.
  // Borrows the pieces. Takes no memory yet.
  explicit GatheredRows(AttentionProblem& problem);

  int64_t byte_size() const;
  // Each copies at most 1 MiB, so that others need not wait for it.
  int64_t item_count() const;
  double item_flop(int64_t item) const;  // work that takes as long
  double flop() const;                   // of all items

  // One item, each once, on any threads at once. The first takes the memory: may throw std::bad_alloc.
  void Copy(int64_t item);
  // When all are copied. `problem` is the one they were taken from; borrows this.
  void PutInto(AttentionProblem& problem) const;

 private:
  // What an item copies.
  struct Chunk {
    const Pieces& from;
    int64_t begin = 0;
    int64_t count = 0;
    int64_t to = 0;  // where `from` begins in bytes_
  };
  Chunk ChunkOf(int64_t item) const;
  // Where the values begin in bytes_.
  int64_t value_begin() const;

  const Pieces* const key_;    // null: not in pieces
  const Pieces* const value_;  // likewise
  std::once_flag has_memory_;
  AlignedBytes bytes_;  // keys, then values
};

}  // namespace triad
