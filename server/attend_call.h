// Attend, unary: read from the transport's own memory (read_attend.h), where copying it would cost more than computing.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "server/attend_task.h"
#include "server/job.h"
#include "server/serving_context.h"

namespace triad {

// What gRPC hands over with a call that it does not decode, and keeps until the call is done.
struct RawExchange {
  grpc::CallbackServerContext& rpc;
  grpc::ByteBuffer& request;  // emptied: what is needed of it is held no longer than that
  grpc::ByteBuffer& response;
};

// Answers one call, as StartTaskCall does; INVALID_ARGUMENT also when the request is no AttendRequest.
grpc::ServerUnaryReactor* StartAttendCall(const RawExchange& exchange,
                                          MakeTask<v1::AttendRequest, v1::AttendResponse> make,
                                          ServingContext& context);

}  // namespace triad
