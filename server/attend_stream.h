// The streaming Attend.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "server/serving_context.h"
#include "triad/v1/attention.pb.h"

namespace triad {

// Serves one stream by the rules of AttendStream (attention.proto). The result belongs to gRPC and deletes itself.
grpc::ServerBidiReactor<v1::AttendStreamRequest, v1::AttendStreamResponse>* StartAttendStream(
    grpc::CallbackServerContext& rpc, ServingContext& context);

}  // namespace triad
