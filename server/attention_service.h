// triad.v1.AttentionService, as gRPC sees it.
#pragma once

#include <memory>

#include "server/serving_context.h"
#include "triad/v1/attention.pb.h"

namespace grpc {
class Service;
}

namespace triad {

// Full name, as health checks ask for it: "triad.v1.AttentionService".
extern const char* const kAttentionServiceName;

// The service; methods that it does not offer answer UNIMPLEMENTED. Borrows `context`, which outlives it and every
// call. `info` is what GetServerInfo answers. Shared only in type: a unique_ptr would make its holder include gRPC.
std::shared_ptr<grpc::Service> MakeAttentionService(ServingContext& context, v1::ServerInfo info);

}  // namespace triad
