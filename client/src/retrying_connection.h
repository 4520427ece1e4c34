// Makes failed calls again.
#pragma once

#include <memory>

#include "client/src/runtime.h"
#include "triad/connection.h"

namespace triad::client {

// A connection that makes calls on `next` again by the rule of retry.h. Streams and health checks pass through. A call
// that has no time left is not made.
// `next` may call back from within its Async functions; a fake's callbacks then run there.
std::shared_ptr<Connection> MakeRetryingConnection(std::shared_ptr<Connection> next, const RetryOptions& options,
                                                   std::shared_ptr<Runtime> runtime);

}  // namespace triad::client
