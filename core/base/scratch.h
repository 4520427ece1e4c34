// Memory that one thread reuses from work item to work item, so that steady state allocates nothing (fresh pages cost
// more than the work on them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace triad {

// A bump allocator. Not thread-safe: each compute thread owns one.
//
//   scratch.Reset();                                    // start of an item: everything handed out before is invalid
//   float* scores = scratch.Allocate<float>(rows * columns);   // 64-byte aligned, uninitialised
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Takes back everything handed out. Keeps the memory, as one block that would have held it all.
  void Reset();

  // `count` elements, aligned to 64 bytes, uninitialised, valid until Reset. Dies (a bug in the caller) on a negative
  // count; count is a size the caller has bounded. Throws std::bad_alloc, and stays as it was, when there is no memory.
  template <class T>
  T* Allocate(int64_t count) {
    return reinterpret_cast<T*>(AllocateBytes(count * static_cast<int64_t>(sizeof(T))));
  }

  // Bytes held, used or not.
  int64_t capacity_bytes() const { return capacity_bytes_; }

 private:
  struct FreeAligned {
    void operator()(std::byte* block) const;
  };
  using Block = std::unique_ptr<std::byte[], FreeAligned>;

  std::byte* AllocateBytes(int64_t bytes);

  std::vector<Block> blocks_;   // the last one is being filled
  int64_t block_bytes_ = 0;     // size of the last block
  int64_t used_bytes_ = 0;      // of the last block
  int64_t capacity_bytes_ = 0;  // of all blocks
};

}  // namespace triad
