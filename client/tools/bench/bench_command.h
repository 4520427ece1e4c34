// `triad bench`: load, and what a server makes of it.
#pragma once

#include "client/tools/tool.h"

namespace CLI {
class App;
}

namespace triad::tools {

// Adds the command to `app`; as AddHealthCommand. kExitFailed also when Verdict (bench_report.h) says so; the report is
// printed even then.
void AddBenchCommand(CLI::App& app, const World& world, int& exit_code);

}  // namespace triad::tools
