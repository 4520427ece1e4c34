// `triad layers`: what layers a server hosts; loading and unloading them.
#pragma once

#include "client/tools/tool.h"

namespace CLI {
class App;
}

namespace triad::tools {

// Adds the command, with its own commands list, get, load and unload, to `app`; as AddHealthCommand. Returns it, for
// commands about layers that need no server.
CLI::App& AddLayersCommand(CLI::App& app, const World& world, int& exit_code);

}  // namespace triad::tools
