#include "client/tools/layers_command.h"

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/tools/await_answer.h"
#include "client/tools/connection_flags.h"
#include "client/tools/json_output.h"
#include "triad/client.h"

namespace triad::tools {
namespace {

struct LayersFlags {
  ConnectionFlags connection;
  client::LayerName layer;
};

// One of the commands, once there is a connection. Prints its answer, or returns why there is none.
using Action = absl::Status (*)(const client::Client&, const LayersFlags&, std::ostream&);

Json LayerJson(const client::Layer& layer) {
  return {{"name", layer.name},
          {"version", layer.version},
          {"model_dim", layer.model_dim},
          {"context_dim", layer.context_dim},
          {"output_dim", layer.output_dim},
          {"heads", layer.heads},
          {"kv_heads", layer.kv_heads},
          {"qk_head_dim", layer.qk_head_dim},
          {"v_head_dim", layer.v_head_dim},
          {"causal", layer.causal},
          {"rotary_dim", layer.rotary_dim},
          {"requires_context", layer.requires_context},
          {"weights_bytes", layer.weights_bytes}};
}

void PrintLayer(const client::Layer& layer, bool json, std::ostream& out) {
  if (json) {
    PrintJson(LayerJson(layer), out);
  } else {
    PrintTable(LayerJson(layer), out);
  }
}

// "64", or "64/128" where queries and keys differ from values.
std::string HeadDims(const client::Layer& layer) {
  return layer.qk_head_dim == layer.v_head_dim ? absl::StrCat(layer.qk_head_dim)
                                               : absl::StrCat(layer.qk_head_dim, "/", layer.v_head_dim);
}

void PrintLayers(const std::vector<client::Layer>& layers, std::ostream& out) {
  constexpr char kRow[] = "%-24s %7s %10s %10s %9s %9s %9s\n";
  out << absl::StrFormat(kRow, "name", "version", "model_dim", "output_dim", "heads", "head_dim", "MiB");
  for (const client::Layer& layer : layers) {
    const std::string heads =
        layer.heads == layer.kv_heads ? absl::StrCat(layer.heads) : absl::StrCat(layer.heads, "/", layer.kv_heads);
    constexpr double kMebibyte = 1 << 20;
    out << absl::StrFormat(kRow, layer.name, absl::StrCat(layer.version), absl::StrCat(layer.model_dim),
                           absl::StrCat(layer.output_dim), heads, HeadDims(layer),
                           absl::StrFormat("%.1f", static_cast<double>(layer.weights_bytes) / kMebibyte));
  }
}

absl::Status List(const client::Client& client, const LayersFlags& flags, std::ostream& out) {
  const auto layers = client.ListLayers(flags.layer.name, flags.connection.call_options());
  if (!layers.ok()) return layers.status();
  if (!flags.connection.json) {
    PrintLayers(*layers, out);
    return absl::OkStatus();
  }
  Json list = Json::array();
  for (const client::Layer& layer : *layers) list.push_back(LayerJson(layer));
  PrintJson({{"layers", list}}, out);
  return absl::OkStatus();
}

absl::Status Get(const client::Client& client, const LayersFlags& flags, std::ostream& out) {
  const auto layer = client.GetLayer(flags.layer, flags.connection.call_options());
  if (layer.ok()) PrintLayer(*layer, flags.connection.json, out);
  return layer.status();
}

absl::Status Load(const client::Client& client, const LayersFlags& flags, std::ostream& out) {
  const auto layer = client.LoadLayer(flags.layer, flags.connection.call_options());
  if (layer.ok()) PrintLayer(*layer, flags.connection.json, out);
  return layer.status();
}

absl::Status Unload(const client::Client& client, const LayersFlags& flags, std::ostream& out) {
  if (absl::Status status = client.UnloadLayer(flags.layer, flags.connection.call_options()); !status.ok()) {
    return status;
  }
  if (flags.connection.json) {
    PrintJson({{"name", flags.layer.name}, {"version", *flags.layer.version}}, out);
  } else {
    out << "unloaded " << flags.layer.name << " version " << *flags.layer.version << "\n";
  }
  return absl::OkStatus();
}

int Run(Action action, const LayersFlags& flags, const World& world) {
  const std::string& target = flags.connection.target;
  const auto connection = world.connect(flags.connection.client_options());
  if (!connection.ok()) return PrintError(connection.status(), kExitUsage, world);
  std::ostringstream answer;  // printed once the line of progress is gone
  const absl::Status status =
      AwaitAnswer(world, target, [&] { return action(client::Client(*connection), flags, answer); });
  world.out << answer.str();
  return status.ok() ? kExitOk : PrintCallError(status, target, ExitCodeOf(status), world);
}

}  // namespace

CLI::App& AddLayersCommand(CLI::App& app, const World& world, int& exit_code) {
  CLI::App* layers = app.add_subcommand("layers", "Show, load and unload the layers that the server hosts");
  layers->require_subcommand(1);
  // Adds one of them; returns its options for the name and the version.
  const auto add = [&](const std::string& name, const std::string& description, Action action) {
    auto flags = std::make_shared<LayersFlags>();  // shared with the callback, which CLI11 copies
    CLI::App* command = layers->add_subcommand(name, description);
    AddConnectionFlags(*command, flags->connection);
    CLI::Option* layer = command->add_option("name", flags->layer.name, "Name of the layer, such as minilm/0");
    CLI::Option* version = nullptr;
    if (name != "list") version = command->add_option("--layer-version", flags->layer.version, "Its version");
    command->callback([action, flags, &world, &exit_code] { exit_code = Run(action, *flags, world); });
    return std::pair(layer, version);
  };
  add("list", "The versions that are loaded, of one layer or of all", List);
  add("get", "One layer in full; without a version the highest that is loaded", Get).first->required();
  add("load", "Load a version from the server's layer directory; without one the highest there", Load)
      .first->required();
  const auto [name, version] = add("unload", "Take a version out of service", Unload);
  name->required();
  version->required();
  return *layers;
}

}  // namespace triad::tools
