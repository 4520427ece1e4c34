// The command line of `triad bench`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/tools/bench/bench_config.h"
#include "client/tools/flag_rules.h"

namespace CLI {
class App;
}

namespace triad::tools {

struct BenchFlags {
  BenchConfig config;  // what flags say directly; the rest is text until ToConfig reads it

  std::string tokens = "16";
  std::string kv_len;
  std::string concurrency;
  std::string rate;
  std::string slo;
  std::string trace;
  std::optional<int64_t> kv_heads;    // unset: as many as heads
  std::optional<int64_t> v_head_dim;  // unset: qk_head_dim

  bool json = false;
  std::string csv;  // files to write; empty: none
  std::string html;
};

// Adds every flag, and BenchFlagRules, to `command`. `flags` outlives the parse.
void AddBenchFlags(CLI::App& command, BenchFlags& flags);

// Which flags go with which. Every flag is in one of the rules, if only in that of those which fit every run.
std::vector<FlagRule> BenchFlagRules();

// What the flags ask for, read and checked. INVALID_ARGUMENT names flag, rule and value; a trace file's errors are
// ReadTrace's.
absl::StatusOr<BenchConfig> ToConfig(const BenchFlags& flags);

}  // namespace triad::tools
