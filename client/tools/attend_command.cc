#include "client/tools/attend_command.h"

#include <memory>

#include "CLI/CLI.hpp"
#include "client/tools/attend_flags.h"
#include "client/tools/attend_inputs.h"
#include "client/tools/tensor_call.h"

namespace triad::tools {

void AddAttendCommand(CLI::App& app, const World& world, int& exit_code) {
  auto flags = std::make_shared<AttendFlags>();  // shared with the callback, which CLI11 copies
  CLI::App* command = app.add_subcommand("attend", "Compute attention of the tensors in files");
  AddAttendFlags(*command, *flags);
  command->callback([flags, &world, &exit_code] {
    exit_code = RunTensorCall<AttendInputs>(
        *flags, world, [](const client::Client& client, const auto& request, const client::CallOptions& options) {
          return client.Attend(request, options);
        });
  });
}

}  // namespace triad::tools
