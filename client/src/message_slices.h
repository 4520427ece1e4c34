// Messages as gRPC sends them.
#pragma once

#include "client/src/message_parts.h"
#include "grpcpp/support/byte_buffer.h"

namespace triad::client {

// `parts` as slices, which may be sent again and again. A tensor that has an owner lies in a slice of its own, where it
// was; everything else is copied, once, into one block of memory. The slices hold owners until gRPC has let go of the
// last of them, on whichever thread that happens.
grpc::ByteBuffer ToByteBuffer(const MessageParts& parts);

}  // namespace triad::client
