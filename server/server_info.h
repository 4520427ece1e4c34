// What GetServerInfo answers.
#pragma once

#include "server/metrics.h"
#include "server/server_options.h"
#include "triad/v1/attention.pb.h"

namespace triad {

// `threads` is the number in use.
v1::ServerInfo MakeServerInfo(const BuildInfo& build, int threads, const ServerOptions& options);

}  // namespace triad
