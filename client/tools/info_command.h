// `triad info`: what the server is and what it accepts.
#pragma once

#include "client/tools/tool.h"

namespace CLI {
class App;
}

namespace triad::tools {

// Adds the command to `app`; as AddHealthCommand.
void AddInfoCommand(CLI::App& app, const World& world, int& exit_code);

}  // namespace triad::tools
