// `triad forward`: one call of a hosted layer, from files to files.
#pragma once

#include "client/tools/tool.h"

namespace CLI {
class App;
}

namespace triad::tools {

// Adds the command to `app`; as AddHealthCommand.
void AddForwardCommand(CLI::App& app, const World& world, int& exit_code);

}  // namespace triad::tools
