#include "client/tools/connection_flags.h"

#include "CLI/CLI.hpp"

namespace triad::tools {

void ParseTimeout(const std::string& text, absl::Duration& timeout) {
  absl::Duration parsed;
  if (!absl::ParseDuration(text, &parsed) || parsed <= absl::ZeroDuration()) {
    throw CLI::ValidationError("--timeout", "must be a duration such as 30s, 1m30s or inf; was " + text);
  }
  timeout = parsed;
}

void AddConnectionFlags(CLI::App& command, ConnectionFlags& flags) {
  command.add_option("--target", flags.target, "Server: host:port, unix:path, or another gRPC target")
      ->envname("TRIAD_TARGET")
      ->capture_default_str();
  command
      .add_option_function<std::string>(
          "--timeout", [&flags](const std::string& text) { ParseTimeout(text, flags.timeout); },
          "Time for the call, retries included, such as 30s, 1m30s or inf")
      ->type_name("DURATION")
      ->default_str(absl::FormatDuration(flags.timeout));
  command.add_flag("--json", flags.json, "Print for machines");
}

}  // namespace triad::tools
