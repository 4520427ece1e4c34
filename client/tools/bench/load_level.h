// Levels of load, as a command line names them; each becomes one run and one row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/tools/bench/arrivals.h"
#include "core/base/clock.h"

namespace triad::tools {

struct LoadLevel {
  std::string label = {};              // "concurrency 4", "rate 100/s", "rate 100/s to 900/s"
  int64_t concurrency = 0;             // closed loop; 0: an open one
  std::vector<RateStage> stages = {};  // open loop; empty: due times are a trace's
};

// "4", or "LOW:HIGH:STEP" for several levels. INVALID_ARGUMENT names rule and text.
absl::StatusOr<std::vector<LoadLevel>> ParseConcurrency(const std::string& text);

// "100", or "LOW:HIGH:STEP" for several levels; "ramp:FROM:TO" and "step:LOW:HIGH:STEP" for one whose rate changes
// while it runs, evenly or in steps of equal length. Each lasts `duration`. INVALID_ARGUMENT as above.
absl::StatusOr<std::vector<LoadLevel>> ParseRate(const std::string& text, Duration duration);

LoadLevel ConstantRate(double rate, Duration duration);

}  // namespace triad::tools
