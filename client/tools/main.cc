// The `triad` command-line tool.
#include <unistd.h>

#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "client/tools/interrupt_watch.h"
#include "client/tools/tool.h"
#include "triad/allocator.h"
#include "triad/lock_checks.h"

int main(int argc, char** argv) {
  triad::client::TuneAllocatorForLargeMessages().IgnoreError();  // a gain where there is one
  triad::client::TurnOffLockOrderChecks();
  std::optional<triad::tools::InterruptWatch> interrupts;
  const triad::tools::World world = {.out = std::cout,
                                     .err = std::cerr,
                                     .show_progress = isatty(STDERR_FILENO) == 1,
                                     .connect = triad::client::MakeConnection,
                                     .catch_interrupt = [&interrupts] { return interrupts.emplace().token(); }};
  return triad::tools::RunTriad(std::vector<std::string>(argv + 1, argv + argc), world);
}
