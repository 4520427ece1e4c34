// What `triad-demo` shows of hosted layers.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/tools/demo/demo_model.h"
#include "triad/client.h"

namespace triad::tools {

// Prints the map of one head of the server's layer "demo" for the hidden states of `sentence`; then sends the same
// several times at once, and prints how many requests shared their projections. Errors of the calls; INTERNAL when an
// answer is not what the contract says; INVALID_ARGUMENT: the layer has no such head.
absl::Status ShowDemoLayer(const client::Client& client, const Sentence& sentence, int64_t head, std::ostream& out);

// Hidden states and the layer they go through.
struct LayerInput {
  std::string layer;
  std::string hidden_path;  // .npy of [1, tokens, width]
};

// Prints the map of one head of each layer, whose rows and columns are `words`, one per token. Errors as above, and of
// reading the files.
absl::Status ShowLayers(const client::Client& client, const std::vector<LayerInput>& inputs,
                        const std::vector<std::string>& words, int64_t head, std::ostream& out);

// "The server says: ...": where the time of a request went.
void PrintTimings(const client::Timings& timings, std::ostream& out);

}  // namespace triad::tools
