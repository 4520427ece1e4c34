// AttendStream and ForwardStream over gRPC.
#pragma once

#include <memory>

#include "client/src/channel_pool.h"
#include "triad/stream.h"

namespace triad::client {

// Do not wait for the server. Such streams send requests as they are, unchecked. They keep what they need of `pool`.
std::unique_ptr<AttendStream> MakeGrpcAttendStream(ChannelPool& pool, const StreamOptions& options);
std::unique_ptr<ForwardStream> MakeGrpcForwardStream(ChannelPool& pool, const StreamOptions& options);

}  // namespace triad::client
