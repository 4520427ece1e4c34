#include "triad/allocator.h"

#include "gtest/gtest.h"

namespace triad::client {
namespace {

TEST(AllocatorTest, TheCLibraryTakesTheSettings) { EXPECT_EQ(TuneAllocatorForLargeMessages(), absl::OkStatus()); }

}  // namespace
}  // namespace triad::client
