// What the commands of `triad` share: the world they act on, and how they end.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "triad/connection.h"
#include "triad/options.h"

namespace CLI {
class App;
}

namespace triad::tools {

// Exit codes, part of the tool's contract.
constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;  // the call failed, its answer could not be written, or the server is not serving
constexpr int kExitUsage = 2;   // the command line or a file it names is at fault, or the server says that it is

// Everything a command touches; a test gives streams and a connection of its own.
struct World {
  std::ostream& out;
  std::ostream& err;
  bool show_progress = false;  // err is a terminal
  std::function<absl::StatusOr<std::shared_ptr<client::Connection>>(const client::ClientOptions&)> connect;
  // Once called, an interrupt (Ctrl-C) requests a stop of what it returned and no longer ends the process. Null: never.
  std::function<std::stop_token()> catch_interrupt = nullptr;
};

// Adds every command to `app`; parsing a command line that names one runs it and sets `exit_code`. `world` and
// `exit_code` outlive `app`.
void AddCommands(CLI::App& app, const World& world, int& exit_code);

// Runs `triad` with the command line `arguments`, the program's name not among them. Returns the exit code.
int RunTriad(std::vector<std::string> arguments, const World& world);

// For a call that failed: INVALID_ARGUMENT, which is the request's fault and so the user's, as for a command line.
int ExitCodeOf(const absl::Status& error);

// Prints why a command failed. Returns `exit_code`.
int PrintError(const absl::Status& status, int exit_code, const World& world);

// The same for a call, and what to change where that is known. `target`: who was called; empty where `status` says so
// itself.
int PrintCallError(const absl::Status& status, const std::string& target, int exit_code, const World& world);

}  // namespace triad::tools
