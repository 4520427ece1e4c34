// The first requests, sent by the server to itself, so that no client pays for cold memory, code and compiled products.
#pragma once

#include "absl/status/status.h"
#include "server/serving_context.h"

namespace triad {

// Answers a few shapes of each type on every thread, the receiving one included. Blocks until they are answered.
// The status of the first that failed: this machine cannot serve.
absl::Status WarmUp(ServingContext& context, int threads);

}  // namespace triad
