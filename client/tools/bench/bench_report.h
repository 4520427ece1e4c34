// What `triad bench` found out, and how it is told: to people, to machines, as a page.
#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/tools/bench/check_answers.h"
#include "client/tools/bench/run_recorder.h"
#include "client/tools/bench/service_level.h"
#include "client/tools/json_output.h"

namespace triad::tools {

// One run.
struct LevelReport {
  std::string label;     // as LoadLevel's
  bool is_open = false;  // sent by a schedule: there may be late and dropped ones
  RunResult result;
  RunEnd end = RunEnd::kComplete;
  CheckReport check;
  absl::Status generator;  // CheckGenerator's
};

struct BenchReport {
  Json setup;  // what was sent, how, to whom and when
  std::optional<ServiceLevel> slo;
  std::vector<LevelReport> levels;  // in the order in which they ran; not empty

  struct Search {
    std::optional<double> highest_rate;    // that met the SLO; unset: none did
    int64_t requests = 0;                  // that were due in its run
    bool generator_was_the_limit = false;  // the rate above it was missed by this tool's machine
  };
  std::optional<Search> search;  // of --find-max
};

// The percentiles that every report has.
struct NamedShare {
  const char* name;
  double share;
};
inline constexpr NamedShare kReportedShares[] = {{"p50", 0.5},  {"p75", 0.75},    {"p90", 0.9},      {"p95", 0.95},
                                                 {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}};

// "RESOURCE_EXHAUSTED", for an index into RunResult::codes.
std::string CodeName(size_t code);

// ", interrupted" after a `separator` of ", "; nothing for a run that is complete.
std::string EndMark(RunEnd end, const std::string& separator);

// Why the command fails although it has a report: wrong answers, an interrupt, refusals for good, a load generator that
// could not keep up (a search takes that as an answer), not one result, or a search without one. OK otherwise: errors
// of the server and a missed SLO are results.
absl::Status Verdict(const BenchReport& report);

// For people: one level in full, several in a table.
void PrintReport(const BenchReport& report, std::ostream& out);

Json ReportJson(const BenchReport& report);

// A line of names, then one for each level. Durations are in nanoseconds; empty where nothing was answered.
std::string ReportCsv(const BenchReport& report);

// One page that needs nothing else: distribution of latency; latency, throughput and errors over time, as SVG.
std::string ReportHtml(const BenchReport& report);

}  // namespace triad::tools
