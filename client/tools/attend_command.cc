#include "client/tools/attend_command.h"

#include <memory>
#include <optional>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"
#include "client/tools/attend_flags.h"
#include "client/tools/attend_inputs.h"
#include "client/tools/attend_report.h"
#include "client/tools/progress.h"
#include "core/base/clock.h"
#include "triad/client.h"

namespace triad::tools {
namespace {

int RunAttend(const AttendFlags& flags, const World& world) {
  const std::string& target = flags.connection.target;
  std::optional<Progress> progress(std::in_place, world.err, world.show_progress);
  // Ends the progress line before anything else is printed.
  const auto fail = [&](const absl::Status& status, int exit_code) {
    progress.reset();
    return PrintError(status, target, exit_code, world);
  };

  progress->Enter("reading tensors");
  if (const absl::Status status = CheckOutputPaths(flags); !status.ok()) return fail(status, kExitUsage);
  const absl::StatusOr<AttendInputs> inputs = AttendInputs::Load(flags);
  if (!inputs.ok()) return fail(inputs.status(), kExitUsage);
  const auto connection = world.connect(flags.connection.client_options());
  if (!connection.ok()) return fail(connection.status(), kExitUsage);

  progress->Enter("waiting for " + target);
  const Time start = RealClock().Now();
  const auto response = client::Client(*connection).Attend(inputs->request(), flags.connection.call_options());
  const absl::Duration round_trip = absl::FromChrono(RealClock().Now() - start);
  if (!response.ok()) return fail(response.status(), kExitFailed);

  progress->Enter("writing the answer");
  const std::vector<AnswerPart> parts = AnswerParts(*response, flags);
  if (const absl::Status status = WriteAnswer(parts); !status.ok()) return fail(status, kExitFailed);
  progress.reset();
  if (flags.connection.json) {
    PrintAnswerJson(parts, response->timings, round_trip, world.out);
  } else {
    PrintAnswer(parts, response->timings, round_trip, world.out);
  }
  return kExitOk;
}

}  // namespace

void AddAttendCommand(CLI::App& app, const World& world, int& exit_code) {
  auto flags = std::make_shared<AttendFlags>();  // shared with the callback, which CLI11 copies
  CLI::App* command = app.add_subcommand("attend", "Compute attention of the tensors in files");
  AddAttendFlags(*command, *flags);
  command->callback([flags, &world, &exit_code] { exit_code = RunAttend(*flags, world); });
}

}  // namespace triad::tools
