// AttendStream over gRPC.
#pragma once

#include <memory>

#include "client/src/channel_pool.h"
#include "triad/attend_stream.h"

namespace triad::client {

// Does not wait for the server. Sends requests as they are, unchecked. Keeps what it needs of `pool`.
std::unique_ptr<AttendStream> MakeGrpcAttendStream(ChannelPool& pool, const StreamOptions& options);

}  // namespace triad::client
