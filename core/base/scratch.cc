#include "core/base/scratch.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "core/base/check.h"
#include "core/base/dims.h"

namespace triad {
namespace {
constexpr int64_t kAlignment = 64;             // a cache line, and the widest vector
constexpr int64_t kFirstBlockBytes = 1 << 20;  // holds the tiles of common shapes
}  // namespace

void Scratch::FreeAligned::operator()(std::byte* block) const { std::free(block); }

void Scratch::Reset() {
  if (blocks_.size() > 1) {
    const int64_t total = capacity_bytes_;
    blocks_.clear();
    capacity_bytes_ = block_bytes_ = 0;
    AllocateBytes(total);
  }
  used_bytes_ = 0;
}

std::byte* Scratch::AllocateBytes(int64_t bytes) {
  TRIAD_CHECK(bytes >= 0, "scratch sizes are bounded by the caller");
  bytes = RoundUp(std::max<int64_t>(bytes, 1), kAlignment);
  if (used_bytes_ + bytes > block_bytes_) {
    // The fields change only once there is a block: after bad_alloc the scratch is as it was.
    const int64_t block_bytes = std::max({bytes, kFirstBlockBytes, capacity_bytes_});
    Block block(static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<size_t>(block_bytes))));
    if (block == nullptr) throw std::bad_alloc();
    blocks_.push_back(std::move(block));
    block_bytes_ = block_bytes;
    capacity_bytes_ += block_bytes;
    used_bytes_ = 0;
  }
  std::byte* result = blocks_.back().get() + used_bytes_;
  used_bytes_ += bytes;
  return result;
}

}  // namespace triad
