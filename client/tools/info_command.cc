#include "client/tools/info_command.h"

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"
#include "client/tools/await_answer.h"
#include "client/tools/connection_flags.h"
#include "client/tools/json_output.h"
#include "triad/client.h"

namespace triad::tools {
namespace {

Json LimitsJson(const client::Limits& limits) {
  return {{"max_message_bytes", limits.max_message_bytes},
          {"max_tokens_per_request", limits.max_tokens_per_request},
          {"max_head_dim", limits.max_head_dim},
          {"max_weights_bytes", limits.max_weights_bytes},
          {"max_in_flight_bytes", limits.max_in_flight_bytes},
          {"max_queue_time_ns", absl::ToInt64Nanoseconds(limits.max_queue_time)},
          {"max_streams", limits.max_streams},
          {"max_stream_items", limits.max_stream_items},
          {"max_reference_work", limits.max_reference_work},
          {"max_batch", limits.max_batch},
          {"max_in_flight_requests", limits.max_in_flight_requests},
          {"grpc_memory_bytes", limits.grpc_memory_bytes},
          {"max_layer_loads", limits.max_layer_loads},
          {"max_peer_in_flight_requests", limits.max_peer_in_flight_requests},
          {"max_peer_in_flight_bytes", limits.max_peer_in_flight_bytes},
          {"max_head_sequences", limits.max_head_sequences},
          {"max_layer_weights_bytes", limits.max_layer_weights_bytes}};
}

Json InfoJson(const client::ServerInfo& info) {
  return {{"version", info.version}, {"instruction_set", info.instruction_set},
          {"kernel", info.kernel},   {"onednn_version", info.onednn_version},
          {"threads", info.threads}, {"limits", LimitsJson(info.limits)}};
}

int RunInfo(const ConnectionFlags& flags, const World& world) {
  const auto connection = world.connect(flags.client_options());
  if (!connection.ok()) return PrintError(connection.status(), kExitUsage, world);
  const auto info =
      AwaitAnswer(world, flags.target, [&] { return client::Client(*connection).GetServerInfo(flags.call_options()); });
  if (!info.ok()) return PrintCallError(info.status(), flags.target, ExitCodeOf(info.status()), world);
  if (flags.json) {
    PrintJson(InfoJson(*info), world.out);
  } else {
    PrintTable(InfoJson(*info), world.out);
  }
  return kExitOk;
}

}  // namespace

void AddInfoCommand(CLI::App& app, const World& world, int& exit_code) {
  auto flags = std::make_shared<ConnectionFlags>();  // shared with the callback, which CLI11 copies
  CLI::App* command = app.add_subcommand("info", "Show what the server is and what it accepts");
  AddConnectionFlags(*command, *flags);
  command->callback([flags, &world, &exit_code] { exit_code = RunInfo(*flags, world); });
}

}  // namespace triad::tools
