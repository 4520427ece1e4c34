#include "tests/support/attention_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "core/base/dims.h"

namespace triad {

GuardedBuffer::GuardedBuffer(int64_t bytes, int64_t slack) : bytes_(bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t usable = RoundUp(bytes + slack, page);
  mapped_bytes_ = static_cast<size_t>(usable + page);
  mapping_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  TRIAD_CHECK(mapping_ != MAP_FAILED, "the test has memory");
  std::byte* const end = static_cast<std::byte*>(mapping_) + usable;
  TRIAD_CHECK(mprotect(end, static_cast<size_t>(page), PROT_NONE) == 0, "the last page can be closed");
  data_ = end - slack - bytes;
  std::memset(data_, 0xFF, static_cast<size_t>(bytes));
}

GuardedBuffer::~GuardedBuffer() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_bytes_(other.mapped_bytes_),
      data_(other.data_),
      bytes_(other.bytes_) {}

}  // namespace triad
