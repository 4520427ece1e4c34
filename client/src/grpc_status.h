// Statuses of gRPC as the client gives them.
#pragma once

#include "absl/status/status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"

namespace triad::client {

// The same code and message, with the pushback that `context`, whose call has ended, brought along (see RetryPushback).
absl::Status FromGrpc(const grpc::Status& status, const grpc::ClientContext& context);

}  // namespace triad::client
