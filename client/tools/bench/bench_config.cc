#include "client/tools/bench/bench_config.h"

#include "absl/strings/str_cat.h"
#include "client/tools/bench/request_builder.h"

namespace triad::tools {
namespace {

absl::Status Require(bool holds, const std::string& rule, int64_t value) {
  if (holds) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(rule, "; was ", value));
}

bool IsConstantRate(const LoadLevel& level) {
  return level.stages.size() == 1 && level.stages[0].from == level.stages[0].to;
}

}  // namespace

PlannedRequest LongestOf(const BenchConfig& config) {
  return config.trace ? Longest(*config.trace) : Longest(config.draw);
}

absl::Status CheckConfig(const BenchConfig& c) {
  if (absl::Status status = CheckWorkload(c.workload); !status.ok()) return status;
  for (const absl::Status& status : {CheckRequestSizes(c.workload, LongestOf(c)),
                                     Require(c.connections >= 1, "--connections must be >= 1", c.connections),
                                     Require(c.max_requests >= 1, "--requests must be >= 1", c.max_requests),
                                     Require(c.max_in_flight >= 1, "--max-in-flight must be >= 1", c.max_in_flight),
                                     Require(c.check >= 0, "--check must be >= 0", c.check)}) {
    if (!status.ok()) return status;
  }
  if (!(c.find_max_precision > 0)) return absl::InvalidArgumentError("--find-max-precision must be > 0");
  if (c.find_max && !c.slo) return absl::InvalidArgumentError("--find-max needs an --slo to meet");
  if (c.find_max && !(c.levels.size() == 1 && IsConstantRate(c.levels[0]))) {
    return absl::InvalidArgumentError("--find-max begins at one constant --rate");
  }
  if (!c.record_path.empty() && (c.find_max || c.levels.size() > 1)) {
    return absl::InvalidArgumentError("--record writes one run: give one level, and no --find-max");
  }
  return absl::OkStatus();
}

}  // namespace triad::tools
