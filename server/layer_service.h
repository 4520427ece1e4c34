// triad.v1.LayerService, as gRPC sees it.
#pragma once

#include <memory>

#include "server/serving_context.h"

namespace grpc {
class Service;
}

namespace triad {

// Full name, as health checks ask for it: "triad.v1.LayerService".
extern const char* const kLayerServiceName;

// Borrows `context`, which outlives it and every call. Shared only in type, as MakeAttentionService.
std::shared_ptr<grpc::Service> MakeLayerService(ServingContext& context);

}  // namespace triad
