// What `triad-demo` shows of hosted layers.
#pragma once

#include <cstdint>
#include <ostream>

#include "absl/status/status.h"
#include "client/tools/demo/demo_model.h"
#include "triad/client.h"

namespace triad::tools {

// Prints the map of one head of the server's layer "demo" for the hidden states of `sentence`; then sends the same
// several times at once, and prints how many requests shared their projections. Errors of the calls; INTERNAL when an
// answer is not what the contract says; INVALID_ARGUMENT: the layer has no such head.
absl::Status ShowDemoLayer(const client::Client& client, const Sentence& sentence, int64_t head, std::ostream& out);

// "The server says: ...": where the time of a request went.
void PrintTimings(const client::Timings& timings, std::ostream& out);

}  // namespace triad::tools
