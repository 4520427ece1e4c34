// `triad health`: is the server serving?
#pragma once

#include "client/tools/tool.h"

namespace CLI {
class App;
}

namespace triad::tools {

// Adds the command to `app`. Parsing a command line that names it runs it and sets `exit_code`: kExitOk only when the
// server answers SERVING, so that a container's health check can be this command. `world` and `exit_code` outlive
// `app`.
void AddHealthCommand(CLI::App& app, const World& world, int& exit_code);

}  // namespace triad::tools
