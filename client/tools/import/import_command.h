// `triad layers import`: layer folders for a server's --layer_dir, from a trained model.
#pragma once

#include "client/tools/tool.h"

namespace CLI {
class App;
}

namespace triad::tools {

// Adds the command to `layers`. Calls no server. Parsing a command line that names it runs it and sets `exit_code`:
// kExitUsage when the checkpoint is not understood or a layer is there already, and nothing was written; kExitFailed
// when writing failed. `world` and `exit_code` outlive `layers`.
void AddImportCommand(CLI::App& layers, const World& world, int& exit_code);

}  // namespace triad::tools
