// `triad attend`: one attention call, from files to files.
#pragma once

#include "client/tools/tool.h"

namespace CLI {
class App;
}

namespace triad::tools {

// Adds the command to `app`; as AddHealthCommand.
void AddAttendCommand(CLI::App& app, const World& world, int& exit_code);

}  // namespace triad::tools
