// `triad-demo`: one sentence through a running server.
#include <unistd.h>

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "client/tools/demo/run_demo.h"
#include "client/tools/flag_rules.h"
#include "client/tools/tool.h"

int main(int argc, char** argv) {
  using triad::tools::DemoOptions;
  using triad::tools::World;
  DemoOptions options;
  CLI::App app("Sends one sentence through a Triad server and shows its attention map.", "triad-demo");
  app.add_option("--target", options.target, "Server: host:port, unix:path, or another gRPC target")
      ->envname("TRIAD_TARGET")
      ->capture_default_str();
  app.add_option("--http", options.http, "host:port of its /metrics; '' to leave it out")->capture_default_str();
  app.add_option("--head", options.head, "Whose map to print")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--seed", options.seed, "Of the random weights")->capture_default_str();
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {  // CLI11 takes them from the back, and "--http=" for one without its value
    const std::string flag = triad::tools::FlagWithNothing(argv[i]);
    if (!flag.empty()) arguments.emplace_back();
    arguments.push_back(flag.empty() ? argv[i] : flag);
  }
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? triad::tools::kExitOk : triad::tools::kExitUsage;
  }

  const World world = {.out = std::cout,
                       .err = std::cerr,
                       .show_progress = isatty(STDERR_FILENO) == 1,
                       .connect = triad::client::MakeConnection};
  const absl::Status status = triad::tools::RunDemo(options, world);
  if (status.ok()) return triad::tools::kExitOk;
  return triad::tools::PrintCallError(status, options.target, triad::tools::kExitFailed, world);
}
