#include "core/base/aligned_bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <utility>

namespace triad {
namespace {

TEST(AlignedBytesTest, BeginsAtACacheLineAndHasRoomForAll) {
  for (const int64_t bytes : {0, 1, 63, 64, 65, 1'000'000}) {
    const AlignedBytes memory(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 64, 0u) << bytes;
    if (bytes > 0) std::memset(memory.data(), 1, static_cast<size_t>(bytes));  // AddressSanitizer looks
  }
}

TEST(AlignedBytesTest, MovesWithItsBytes) {
  AlignedBytes first(10);
  std::byte* const data = first.data();
  const AlignedBytes second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(AlignedBytes().data(), nullptr);
}

}  // namespace
}  // namespace triad
