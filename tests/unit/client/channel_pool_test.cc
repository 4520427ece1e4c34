#include "client/src/channel_pool.h"

#include "grpc/grpc.h"
#include "gtest/gtest.h"

namespace triad::client {
namespace {

// Whoever lets go of gRPC last may wait 10 s for its poller.
TEST(ChannelPoolTest, TheLastPoolDoesNotEndGrpc) {
  ClientOptions options;
  options.target = "127.0.0.1:1";
  ASSERT_TRUE(ChannelPool::Create(options).ok());
  EXPECT_NE(grpc_is_initialized(), 0);
}

}  // namespace
}  // namespace triad::client
