#include "client/tools/connection_flags.h"

#include "CLI/CLI.hpp"
#include "client/tools/option_kinds.h"

namespace triad::tools {

void AddConnectionFlags(CLI::App& command, ConnectionFlags& flags) {
  command.add_option("--target", flags.target, "Server: host:port, unix:path, or another gRPC target")
      ->envname("TRIAD_TARGET")
      ->capture_default_str();
  AddTimeout(command, flags.timeout, "Time for the call, retries included, such as 30s, 1m30s or inf");
  command.add_flag("--json", flags.json, "Print for machines");
}

}  // namespace triad::tools
