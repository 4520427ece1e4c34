// One attempt of each call, over gRPC.
#pragma once

#include <memory>
#include <string>

#include "client/src/channel_pool.h"
#include "triad/connection.h"

namespace triad::client {

// Neither retries nor checks limits: decorators do. Tensors that do not match their shapes reach the server.
std::shared_ptr<Connection> MakeGrpcConnection(std::shared_ptr<ChannelPool> pool);

}  // namespace triad::client
