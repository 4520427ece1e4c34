#include "client/tools/health_command.h"

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "client/tools/await_answer.h"
#include "client/tools/connection_flags.h"
#include "client/tools/json_output.h"
#include "triad/client.h"

namespace triad::tools {
namespace {

struct HealthFlags {
  ConnectionFlags connection;
  std::string service;
};

const char* Name(client::Health health) {
  switch (health) {
    case client::Health::kServing:
      return "SERVING";
    case client::Health::kNotServing:
      return "NOT_SERVING";
    case client::Health::kUnknown:
      break;
  }
  return "UNKNOWN";
}

int RunHealth(const HealthFlags& flags, const World& world) {
  const auto connection = world.connect(flags.connection.client_options());
  if (!connection.ok()) return PrintError(connection.status(), kExitUsage, world);
  const auto health = AwaitAnswer(world, flags.connection.target, [&] {
    return client::Client(*connection).CheckHealth(flags.service, flags.connection.call_options());
  });
  if (!health.ok()) return PrintCallError(health.status(), flags.connection.target, ExitCodeOf(health.status()), world);
  if (flags.connection.json) {
    PrintJson({{"service", flags.service}, {"status", Name(*health)}}, world.out);
  } else {
    world.out << Name(*health) << "\n";
  }
  return *health == client::Health::kServing ? kExitOk : kExitFailed;
}

}  // namespace

void AddHealthCommand(CLI::App& app, const World& world, int& exit_code) {
  auto flags = std::make_shared<HealthFlags>();  // shared with the callback, which CLI11 copies
  CLI::App* command = app.add_subcommand("health", "Ask whether the server is serving (exit code 0: it is)");
  AddConnectionFlags(*command, flags->connection);
  command->add_option("--service", flags->service,
                      "One service, such as triad.v1.AttentionService; default: the server");
  command->callback([flags, &world, &exit_code] { exit_code = RunHealth(*flags, world); });
}

}  // namespace triad::tools
