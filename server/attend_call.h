// The unary Attend.
#pragma once

#include "server/serving_context.h"
#include "triad/v1/attention.pb.h"

namespace grpc {
class CallbackServerContext;
class ServerUnaryReactor;
}  // namespace grpc

namespace triad {

// Answers one call: validates, submits, returns; small work on an idle server is computed before it returns. The result
// belongs to gRPC and deletes itself; gRPC keeps `rpc`, `request` and `response` until then.
grpc::ServerUnaryReactor* StartAttend(grpc::CallbackServerContext& rpc, const v1::AttendRequest& request,
                                      v1::AttendResponse& response, ServingContext& context);

}  // namespace triad
