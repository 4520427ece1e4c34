// The flags of every command that calls a server.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "triad/options.h"

namespace CLI {
class App;
}

namespace triad::tools {

struct ConnectionFlags {
  std::string target = client::ClientOptions().target;
  absl::Duration timeout = client::kDefaultTimeout;
  bool json = false;

  client::ClientOptions client_options() const {
    client::ClientOptions options;
    options.target = target;
    return options;
  }
  client::CallOptions call_options() const { return {.timeout = timeout, .cancel = {}}; }
};

// Adds --target, --timeout and --json to `command`. `flags` outlives the parse.
void AddConnectionFlags(CLI::App& command, ConnectionFlags& flags);

}  // namespace triad::tools
