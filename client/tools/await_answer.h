// Progress for a command that waits for one answer and prints it.
#pragma once

#include <string>

#include "client/tools/progress.h"
#include "client/tools/tool.h"

namespace triad::tools {

// What `call` returns, with a line of progress when that takes long. `call` prints nothing on `world.err`.
template <class Call>
auto AwaitAnswer(const World& world, const std::string& target, Call call) {
  Progress progress(world.err, world.show_progress);
  progress.Enter("waiting for " + target);
  return call();
}

}  // namespace triad::tools
