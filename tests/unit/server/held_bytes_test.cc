#include "server/held_bytes.h"

#include <gtest/gtest.h>

#include "server/server_options.h"

namespace triad {
namespace {

TEST(HeldBytesTest, HoldsUpToItsLimitAndTakesBack) {
  HeldBytes held(100);
  EXPECT_TRUE(held.TryHold(60));
  EXPECT_FALSE(held.TryHold(41));
  EXPECT_TRUE(held.TryHold(40));
  EXPECT_FALSE(held.TryHold(1));
  held.LetGo(60);
  EXPECT_TRUE(held.TryHold(60));
}

TEST(HeldBytesTest, LeavesRoomForTheLargestMessageToArrive) {
  ServerOptions options;
  EXPECT_GT(MostHeldBytesOf(options), 0);
  EXPECT_LE(MostHeldBytesOf(options), options.grpc_memory_bytes - options.max_message_bytes);
  options.grpc_memory_bytes = options.max_message_bytes;
  EXPECT_EQ(MostHeldBytesOf(options), 0);
}

}  // namespace
}  // namespace triad
