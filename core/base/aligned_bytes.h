// A large piece of memory for the length of a request, where kernels like it best.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace triad {

// Owns bytes that hold anything, at an address that is a multiple of 64: a cache line, and the widest vector. Malloc's
// own, aligned by hand: the allocator the server tunes cuts aligned_alloc's remainders to pieces.
class AlignedBytes {
 public:
  AlignedBytes() = default;  // none
  // Throws std::bad_alloc.
  explicit AlignedBytes(int64_t bytes)
      : memory_(static_cast<std::byte*>(std::malloc(static_cast<size_t>(bytes) + kAlignment))) {
    if (memory_ == nullptr) throw std::bad_alloc();
    void* aligned = memory_.get();
    size_t room = static_cast<size_t>(bytes) + kAlignment;
    data_ = static_cast<std::byte*>(std::align(kAlignment, static_cast<size_t>(bytes), aligned, room));
  }

  std::byte* data() const { return data_; }

 private:
  static constexpr size_t kAlignment = 64;
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::byte* data_ = nullptr;
};

}  // namespace triad
