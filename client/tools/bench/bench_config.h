// All that `triad bench` is told, as values.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/tools/bench/arrivals.h"
#include "client/tools/bench/load_level.h"
#include "client/tools/bench/request_stream.h"
#include "client/tools/bench/service_level.h"
#include "client/tools/bench/trace_file.h"
#include "client/tools/bench/workload.h"
#include "core/base/clock.h"
#include "triad/options.h"

namespace triad::tools {

struct BenchConfig {
  // To whom, and by which way.
  std::vector<std::string> targets = {client::ClientOptions().target};
  int connections = 1;                         // to each target
  bool stream = false;                         // items of one stream for each connection, instead of unary calls
  absl::Duration timeout = absl::Seconds(30);  // of each request

  // What. A trace brings its own workload and requests.
  Workload workload = {};
  RequestDraw draw = {};
  std::shared_ptr<const std::vector<TraceEntry>> trace = nullptr;

  // How much, and for how long.
  std::vector<LoadLevel> levels = {};  // one run each, in this order; not empty
  Spacing spacing = Spacing::kConstant;
  Duration duration = std::chrono::seconds(10);                // of each run's sending, but for a trace's own times
  Duration warmup = std::chrono::seconds(1);                   // before the first run, its answers not measured
  int64_t max_requests = std::numeric_limits<int64_t>::max();  // of each run
  int64_t max_in_flight = 1024;                                // open loop

  // What to make of it.
  std::optional<ServiceLevel> slo = {};
  bool find_max = false;             // search from the first level's rate on
  double find_max_precision = 0.05;  // gap of the search's end, as a share of the rate
  Duration late_after = std::chrono::milliseconds(10);
  int64_t check = 8;  // answers of each run that are checked

  std::string record_path = {};  // where to write the requests sent; empty: nowhere

  absl::Time began = absl::UnixEpoch();  // the date of the report
};

// A request as long as the longest that may be sent.
PlannedRequest LongestOf(const BenchConfig& config);

// INVALID_ARGUMENT names the flag at fault, its rule and its value.
absl::Status CheckConfig(const BenchConfig& config);

}  // namespace triad::tools
