#include "client/tools/tool.h"

#include <algorithm>

#include "CLI/CLI.hpp"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/tools/attend_command.h"
#include "client/tools/bench/bench_command.h"
#include "client/tools/completion_command.h"
#include "client/tools/flag_rules.h"
#include "client/tools/forward_command.h"
#include "client/tools/health_command.h"
#include "client/tools/import/import_command.h"
#include "client/tools/info_command.h"
#include "client/tools/layers_command.h"
#include "triad/version.h"

namespace triad::tools {
namespace {

constexpr char kFooter[] =
    "Exit codes: 0 done; 1 the call failed, its answer could not be written, or the server is not serving;\n"
    "2 the command line or a file it names is at fault, by the tool's judgement or the server's.";

// What to change, for errors of a call whose message cannot know.
std::string Hint(absl::StatusCode code, const std::string& target) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
      return absl::StrCat("No server answers", target.empty() ? " there" : absl::StrCat(" at ", target),
                          ". Start one, or name another with --target or TRIAD_TARGET.");
    case absl::StatusCode::kDeadlineExceeded:
      return "Allow more time with --timeout.";
    case absl::StatusCode::kResourceExhausted:
      return "The server is busy, or the message too large for it; `triad info` shows its limits.";
    default:
      return "";
  }
}

// A fault of the command line, and where the flags of `command` are told.
std::string UsageError(absl::string_view fault, absl::string_view command) {
  return absl::StrCat("triad: ", fault, "\n`", command, " --help` shows what there is.\n");
}

// What is wrong with `arguments` that CLI11 would not see, or say worse; empty: nothing.
//
// The first word that should be a subcommand and is none is told with those there are. And CLI11 takes "--flag=" for a
// flag without its value, which would then be the next argument.
std::string FaultOf(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* at = &app;
  std::string path = app.get_name();
  bool names_command = true;  // until a flag comes
  for (const std::string& word : arguments) {
    if (const std::string flag = FlagWithNothing(word); !flag.empty()) {
      return UsageError(absl::StrCat(flag, ": must not be empty"), path);
    }
    const std::vector<const CLI::App*> known = at->get_subcommands([](const CLI::App*) { return true; });
    names_command = names_command && !known.empty() && !absl::StartsWith(word, "-");
    if (!names_command) continue;
    const auto named = std::find_if(known.begin(), known.end(), [&](const CLI::App* a) { return a->check_name(word); });
    if (named == known.end()) {
      const auto name = [](std::string* out, const CLI::App* command) { absl::StrAppend(out, command->get_name()); };
      return UsageError(
          absl::StrCat("no subcommand \"", absl::CHexEscape(word), "\"; there are: ", absl::StrJoin(known, ", ", name)),
          path);
    }
    at = *named;
    absl::StrAppend(&path, " ", at->get_name());
  }
  return "";
}

// An empty value is a variable of a script that was not set, and not a wish for the default.
void RefuseEmptyValues(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    option->check([](const std::string& value) { return value.empty() ? "must not be empty" : ""; });
  }
  for (CLI::App* command : app.get_subcommands(/*filter=*/nullptr)) RefuseEmptyValues(*command);
}

// What was wrong with the command line of `app`, and where its flags are told.
std::string ParseFailure(const CLI::App* app, const CLI::Error& error) {
  std::string command = app->get_name();
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    absl::StrAppend(&command, " ", app->get_name());
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return UsageError(error.what(), command);
  // CLI11 lists them backwards.
  return UsageError(absl::StrCat("not known here: ", absl::StrJoin(app->remaining(), " ")), command);
}

}  // namespace

void AddCommands(CLI::App& app, const World& world, int& exit_code) {
  AddAttendCommand(app, world, exit_code);
  AddForwardCommand(app, world, exit_code);
  AddImportCommand(AddLayersCommand(app, world, exit_code), world, exit_code);
  AddBenchCommand(app, world, exit_code);
  AddHealthCommand(app, world, exit_code);
  AddInfoCommand(app, world, exit_code);
  AddCompletionCommand(app, world);
  RefuseEmptyValues(app);
}

int RunTriad(std::vector<std::string> arguments, const World& world) {
  int exit_code = kExitOk;
  CLI::App app("Multi-head attention from a Triad server.", "triad");
  app.set_version_flag("--version", "triad " TRIAD_CLIENT_VERSION);
  app.require_subcommand(1);
  app.footer(kFooter);
  app.failure_message(ParseFailure);
  AddCommands(app, world, exit_code);

  if (const std::string fault = FaultOf(app, arguments); !fault.empty()) {
    world.err << fault;
    return kExitUsage;
  }
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    const bool asked_for = app.exit(error, world.out, world.err) == 0;  // --help and --version end here too
    return asked_for ? kExitOk : kExitUsage;
  }
  return exit_code;
}

int ExitCodeOf(const absl::Status& error) { return absl::IsInvalidArgument(error) ? kExitUsage : kExitFailed; }

int PrintError(const absl::Status& status, int exit_code, const World& world) {
  world.err << "triad: " << absl::StatusCodeToString(status.code()) << ": " << status.message() << "\n";
  return exit_code;
}

int PrintCallError(const absl::Status& status, const std::string& target, int exit_code, const World& world) {
  PrintError(status, exit_code, world);
  if (const std::string hint = Hint(status.code(), target); !hint.empty()) world.err << hint << "\n";
  return exit_code;
}

}  // namespace triad::tools
