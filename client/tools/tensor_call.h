// The way of a command from files to files: read, call, write, print.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/tools/answer_report.h"
#include "client/tools/progress.h"
#include "client/tools/tool.h"
#include "core/base/clock.h"
#include "triad/client.h"

namespace triad::tools {

// Makes the call that `flags` (of attend or of forward) describe and returns the exit code. `Inputs::Load` turns them
// into a request; `call(client, request, options)` returns the answer, or why there is none.
template <class Inputs, class Flags, class Call>
int RunTensorCall(const Flags& flags, const World& world, Call call) {
  const std::string& target = flags.connection.target;
  std::optional<Progress> progress(std::in_place, world.err, world.show_progress);
  // Ends the progress line before anything else is printed.
  const auto fail = [&](const absl::Status& status, int exit_code) {
    progress.reset();
    return PrintError(status, exit_code, world);
  };

  progress->Enter("reading tensors");
  if (const absl::Status status = CheckOutputPaths(flags.answer, flags.inputs()); !status.ok())
    return fail(status, kExitUsage);
  const auto inputs = Inputs::Load(flags);
  if (!inputs.ok()) return fail(inputs.status(), kExitUsage);
  const auto connection = world.connect(flags.connection.client_options());
  if (!connection.ok()) return fail(connection.status(), kExitUsage);

  progress->Enter("waiting for " + target);
  const Time start = RealClock().Now();
  const auto response = call(client::Client(*connection), inputs->request(), flags.connection.call_options());
  const absl::Duration round_trip = absl::FromChrono(RealClock().Now() - start);
  if (!response.ok()) {
    progress.reset();
    return PrintCallError(response.status(), target, ExitCodeOf(response.status()), world);
  }

  progress->Enter("writing the answer");
  const Answer answer = ReadAnswer(*response, flags.answer);
  if (const absl::Status status = WriteAnswer(answer); !status.ok()) return fail(status, kExitFailed);
  progress.reset();
  if (flags.connection.json) {
    PrintAnswerJson(answer, round_trip, world.out);
  } else {
    PrintAnswer(answer, round_trip, world.out);
  }
  return kExitOk;
}

}  // namespace triad::tools
