// What `triad-demo` does, apart from its command line.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "client/tools/tool.h"

namespace triad::tools {

struct DemoOptions {
  std::string target = client::ClientOptions().target;
  std::string http = "127.0.0.1:8471";  // host:port of /metrics; empty: do not ask
  int64_t head = 0;                     // whose map is printed; >= 0
  uint64_t seed = 1;
};

// Sends a sentence to the server, as queries, keys and values (by its own choice of kernel, and by the reference) and
// as hidden states for its layer "demo", and prints what came back. Errors of the calls; INVALID_ARGUMENT: the options;
// INTERNAL when the answers are not shaped as the contract says.
absl::Status RunDemo(const DemoOptions& options, const World& world);

// The samples of triad_ metrics in `page` (Prometheus' text format) that are not 0, without histograms.
std::string InterestingMetrics(const std::string& page);

}  // namespace triad::tools
