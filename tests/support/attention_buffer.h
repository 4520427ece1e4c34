// Memory that ends where reading must end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace triad {

// Owns `bytes` bytes that end `slack` bytes before a page which no one may touch: a read or write past the end by more
// than `slack` kills the test. Odd slack makes the address odd when `bytes` is even. Filled with 0xFF: NaN in every
// float type.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(int64_t bytes, int64_t slack = 0);
  ~GuardedBuffer();
  GuardedBuffer(GuardedBuffer&& other) noexcept;
  GuardedBuffer& operator=(GuardedBuffer&&) = delete;

  std::byte* data() const { return data_; }
  int64_t byte_size() const { return bytes_; }

 private:
  void* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace triad
