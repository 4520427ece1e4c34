// `triad completion`: shell completion, made from the flags that the commands declare.
#pragma once

#include "client/tools/tool.h"

namespace CLI {
class App;
}

namespace triad::tools {

// Adds the command to `app`. Prints the script for bash, zsh or fish that completes the commands `app` has by then.
// `world` and `app` outlive the parse.
void AddCompletionCommand(CLI::App& app, const World& world);

}  // namespace triad::tools
