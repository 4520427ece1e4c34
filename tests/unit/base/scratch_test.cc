#include "core/base/scratch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace triad {
namespace {

TEST(ScratchTest, HandsOutAlignedMemoryThatDoesNotOverlap) {
  Scratch scratch;
  std::vector<std::byte*> blocks;
  for (int64_t bytes : {1, 63, 64, 65, 0, 3 << 20, 100}) {
    auto* block = scratch.Allocate<std::byte>(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u) << bytes;
    std::memset(block, static_cast<int>(blocks.size()), static_cast<size_t>(bytes));
    if (bytes > 0) blocks.push_back(block);
  }
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(blocks[i][0], static_cast<std::byte>(i)) << i;
}

TEST(ScratchTest, AfterResetTheSameWorkNeedsNoNewMemory) {
  Scratch scratch;
  const auto work = [&scratch] {
    scratch.Reset();
    for (int i = 0; i < 5; ++i) scratch.Allocate<float>(1 << 20);
  };
  work();
  work();
  const int64_t capacity_bytes = scratch.capacity_bytes();
  EXPECT_GE(capacity_bytes, int64_t{5} << 22);
  work();
  EXPECT_EQ(scratch.capacity_bytes(), capacity_bytes);
}

TEST(ScratchDeathTest, DiesOfANegativeCount) {
  Scratch scratch;
  EXPECT_DEATH(scratch.Allocate<float>(-1), "scratch sizes are bounded by the caller");
}

}  // namespace
}  // namespace triad
