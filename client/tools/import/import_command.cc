#include "client/tools/import/import_command.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/tools/flag_rules.h"
#include "client/tools/import/checkpoint.h"
#include "client/tools/import/plan_layer.h"
#include "client/tools/import/write_layer.h"
#include "client/tools/json_output.h"
#include "client/tools/output_files.h"
#include "client/tools/progress.h"

namespace triad::tools {
namespace {

struct ImportFlags {
  std::string from;
  std::string layer_dir;
  std::string name;
  std::optional<int64_t> layer;
  bool all = false;
  int64_t version = 1;
  std::string compute = "f32";
  bool force = false;
  bool list = false;
  bool json = false;
};

// A layer of the checkpoint and where it goes.
struct Import {
  LayerPlan plan;
  LayerPlace place;

  int64_t weights_bytes() const {
    int64_t bytes = 0;
    for (const auto& [name, tensor] : plan.tensors) bytes += *TensorBytes(tensor.dtype, tensor.shape);
    return bytes;
  }
};

// The checkpoint folder's own name.
std::string DefaultName(const std::string& from) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(from, error);
  return error ? "" : path.filename().string();
}

// Everything that can be found wrong before anything is written.
absl::StatusOr<std::vector<Import>> PlanImports(const ImportFlags& flags, const Checkpoint& checkpoint) {
  const std::string name = flags.name.empty() ? DefaultName(flags.from) : flags.name;
  absl::StatusOr<std::vector<LayerPlan>> plans =
      PlanLayers(checkpoint, {.layer = flags.layer, .bf16_compute = flags.compute == "bf16"});
  if (!plans.ok()) return absl::Status(plans.status().code(), absl::StrCat(flags.from, ": ", plans.status().message()));
  std::vector<Import> imports;
  for (LayerPlan& plan : *plans) {
    LayerPlace place = {
        .layer_dir = flags.layer_dir, .name = absl::StrCat(name, "/", plan.index), .version = flags.version};
    if (absl::Status status = CheckLayerName(place.name); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--name: ", status.message()));
    }
    if (!flags.force && !flags.list) {
      if (absl::Status status = CheckFree(place); !status.ok()) return status;
    }
    imports.push_back({std::move(plan), std::move(place)});
  }
  return imports;
}

Json ImportJson(const Import& import) {
  const LayerText& text = import.plan.text;
  return {{"name", import.place.name},
          {"version", import.place.version},
          {"model_dim", text.model_dim},
          {"heads", text.heads},
          {"kv_heads", text.kv_heads},
          {"qk_head_dim", text.head_dim},
          {"causal", text.causal},
          {"rotary_dim", text.rotary.dim},
          {"weights_bytes", import.weights_bytes()},
          {"folder", import.place.folder()}};
}

std::string ImportLine(const Import& import) {
  constexpr double kMiB = 1 << 20;
  const LayerText& text = import.plan.text;
  std::string line =
      absl::StrCat(import.place.name, "  ", text.model_dim, " wide, ", text.heads, " heads of ", text.head_dim);
  if (text.kv_heads != text.heads) absl::StrAppend(&line, ", ", text.kv_heads, " kv heads");
  if (text.causal) absl::StrAppend(&line, ", causal");
  if (text.window_left) absl::StrAppend(&line, ", window ", *text.window_left, " back");
  if (text.rotary.dim > 0) absl::StrAppend(&line, ", rotary");
  return absl::StrCat(line, absl::StrFormat("  %.1f MiB  -> ", static_cast<double>(import.weights_bytes()) / kMiB),
                      import.place.folder(), "\n");
}

// Prints each layer once it is there.
absl::Status WriteAll(const ImportFlags& flags, const std::vector<Import>& imports, const World& world) {
  Json written = Json::array();
  for (const Import& import : imports) {
    if (!flags.list) {
      Progress progress(world.err, world.show_progress);
      progress.Enter(absl::StrCat("writing ", import.place.name));
      if (absl::Status status = WriteLayer(import.plan, import.place, flags.force); !status.ok()) return status;
    }
    if (flags.json) {
      written.push_back(ImportJson(import));
    } else {
      world.out << ImportLine(import);
    }
  }
  if (flags.json) PrintJson(written, world.out);
  return absl::OkStatus();
}

int RunImport(const ImportFlags& flags, const World& world) {
  const absl::Status writable = CheckOutputFolder({"--to", flags.layer_dir});
  if (!writable.ok()) return PrintError(writable, kExitUsage, world);
  const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(flags.from);
  if (!checkpoint.ok()) return PrintError(checkpoint.status(), kExitUsage, world);
  const absl::StatusOr<std::vector<Import>> imports = PlanImports(flags, *checkpoint);
  if (!imports.ok()) return PrintError(imports.status(), kExitUsage, world);
  const absl::Status status = WriteAll(flags, *imports, world);
  return status.ok() ? kExitOk : PrintError(status, kExitFailed, world);
}

}  // namespace

void AddImportCommand(CLI::App& layers, const World& world, int& exit_code) {
  auto flags = std::make_shared<ImportFlags>();  // shared with the callback, which CLI11 copies
  CLI::App* command = layers.add_subcommand("import", "Write layer folders from a Hugging Face checkpoint");
  command->add_option("--from", flags->from, "The checkpoint: a folder with config.json and .safetensors files")
      ->required();
  command->add_option("--to", flags->layer_dir, "The server's --layer_dir; layers become <to>/<name>/<layer>/<version>")
      ->required();
  command->add_option("--name", flags->name, "What the layers are called [the checkpoint folder's name]");
  command->add_option("--layer", flags->layer, "Import this layer only, counted from 0");
  command->add_flag("--all", flags->all, "Import every layer [the default]");
  command->add_option("--version", flags->version, "Version that the layers get [1]")
      ->check(CLI::Range(int64_t{1}, std::numeric_limits<int64_t>::max()));
  command->add_option("--compute", flags->compute, "What the server computes projections in [f32]")
      ->check(CLI::IsMember(std::vector<std::string>{"f32", "bf16"}));
  command->add_flag("--force", flags->force, "Replace versions that are there");
  command->add_flag("--list", flags->list, "Only say what would be written");
  command->add_flag("--json", flags->json, "Print JSON");
  AddFlagRules(*command, {{.flags = {"--all"}, .excludes = {"--layer"}, .why = "it is one layer or every one"},
                          {.flags = {"--force"}, .excludes = {"--list"}, .why = "--list replaces nothing"}});
  command->callback([flags, &world, &exit_code] { exit_code = RunImport(*flags, world); });
}

}  // namespace triad::tools
