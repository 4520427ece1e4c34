#include "client/tools/forward_command.h"

#include <memory>

#include "CLI/CLI.hpp"
#include "client/tools/forward_flags.h"
#include "client/tools/forward_inputs.h"
#include "client/tools/tensor_call.h"

namespace triad::tools {

void AddForwardCommand(CLI::App& app, const World& world, int& exit_code) {
  auto flags = std::make_shared<ForwardFlags>();  // shared with the callback, which CLI11 copies
  CLI::App* command =
      app.add_subcommand("forward", "Apply a layer that the server hosts to the hidden states in a file");
  AddForwardFlags(*command, *flags);
  command->callback([flags, &world, &exit_code] {
    exit_code = RunTensorCall<ForwardInputs>(
        *flags, world, [](const client::Client& client, const auto& request, const client::CallOptions& options) {
          return client.Forward(request, options);
        });
  });
}

}  // namespace triad::tools
