// The command line of `triad bench`: what it asks for, and what it refuses before anything is sent.
#include "client/tools/bench/bench_flags.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_path.h"
#include "tests/unit/tools/fake_connection.h"

namespace triad::tools {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<BenchConfig> Parse(std::vector<std::string> arguments) {
  CLI::App app;
  BenchFlags flags;
  AddBenchFlags(app, flags);
  std::reverse(arguments.begin(), arguments.end());
  app.parse(std::move(arguments));
  return ToConfig(flags);
}

TEST(BenchFlagsTest, WithoutFlagsOneTinyAttendIsInFlight) {
  const auto config = Parse({});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->workload.kind, Workload::Kind::kAttend);
  EXPECT_EQ(config->draw.tokens.high, 16);
  ASSERT_EQ(config->levels.size(), 1u);
  EXPECT_EQ(config->levels[0].concurrency, 1);
}

TEST(BenchFlagsTest, TheWorkloadIsAsAsked) {
  const auto config = Parse({"--tokens", "1", "--kv-len", "uniform:100:200", "--heads", "32", "--kv-heads", "8",
                             "--head-dim", "128", "--dtype", "bf16", "--causal", "--keep", "0.5", "--batch", "2"});
  ASSERT_TRUE(config.ok()) << config.status();
  const Workload& w = config->workload;
  EXPECT_EQ(w.heads, 32);
  EXPECT_EQ(w.kv_heads, 8);
  EXPECT_EQ(w.v_head_dim, 128) << "that of keys";
  EXPECT_EQ(w.dtype, DType::kBf16);
  EXPECT_EQ(w.batch, 2);
  EXPECT_EQ(w.keep, 0.5);
  EXPECT_TRUE(w.causal);
  EXPECT_EQ(Longest(config->draw).kv_len, 200);
}

TEST(BenchFlagsTest, ALayerMakesItForward) {
  const auto config = Parse({"--layer", "demo", "--rate", "50:150:50", "--arrivals", "poisson", "--duration", "500ms",
                             "--target", "a:1,b:2", "--connections", "3"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->workload.kind, Workload::Kind::kForward);
  EXPECT_EQ(config->levels.size(), 3u);
  EXPECT_EQ(config->levels[2].stages[0].length, Duration(milliseconds(500)));
  EXPECT_EQ(config->spacing, Spacing::kPoisson);
  EXPECT_EQ(config->targets, (std::vector<std::string>{"a:1", "b:2"}));
  EXPECT_EQ(config->connections, 3);
}

// The path of a trace of the lines `requests`.
std::string WriteTrace(const std::string& requests) {
  const std::string path = TempPath("flags.trace");
  std::ofstream(path) << R"({"triad_trace":1,"workload":{"kind":"forward","layer":"demo"}})"
                      << "\n"
                      << requests;
  return path;
}

TEST(BenchFlagsTest, ATraceBringsItsWorkloadAndMayBringItsTimes) {
  const std::string path = WriteTrace("{\"due_ns\":0,\"tokens\":5}\n");
  const auto replay = Parse({"--trace", path});
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_EQ(replay->workload.layer, "demo");
  EXPECT_EQ(replay->trace->size(), 1u);
  EXPECT_EQ(replay->levels[0].label, "as recorded");
  const auto faster = Parse({"--trace", path, "--concurrency", "4"});
  ASSERT_TRUE(faster.ok()) << faster.status();
  EXPECT_EQ(faster->levels[0].concurrency, 4);
}

TEST(BenchFlagsTest, ATraceWithoutTimesNeedsALoad) {
  const std::string path = WriteTrace("{\"tokens\":5}\n{\"tokens\":6}\n");
  ToolRun tool;
  EXPECT_EQ(tool.Run({"bench", "--trace", path}), kExitUsage);
  EXPECT_THAT(tool.err.str(), HasSubstr("--trace needs --concurrency or --rate: no line of " + path + " says due_ns"));
  EXPECT_FALSE(tool.target.has_value()) << "nothing was sent";
  for (const std::vector<std::string>& load :
       {std::vector<std::string>{"--concurrency", "2"}, {"--rate", "9"}, {"--find-max", "--slo", "p99=1s"}}) {
    std::vector<std::string> line = {"--trace", path, "--duration", "2s"};
    line.insert(line.end(), load.begin(), load.end());
    EXPECT_TRUE(Parse(line).ok()) << ::testing::PrintToString(line);
  }
}

TEST(BenchFlagsTest, ASeedBesideATraceIsOfPoissonArrivals) {
  const std::string path = WriteTrace("{\"tokens\":5}\n");
  const auto config = Parse({"--trace", path, "--rate", "9", "--arrivals", "poisson", "--seed", "7"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->draw.seed, 7u);
  for (const std::vector<std::string>& load : {std::vector<std::string>{},
                                               {"--concurrency", "1"},
                                               {"--rate", "9"},
                                               {"--rate", "9", "--arrivals", "constant"}}) {
    std::vector<std::string> line = {"bench", "--trace", path, "--seed", "7"};
    line.insert(line.end(), load.begin(), load.end());
    ToolRun tool;
    EXPECT_EQ(tool.Run(line), kExitUsage) << ::testing::PrintToString(line);
    EXPECT_THAT(tool.err.str(), HasSubstr("--seed beside --trace needs --arrivals poisson"));
  }
}

TEST(BenchFlagsTest, ASearchBeginsSomewhere) {
  const auto config = Parse({"--find-max", "--slo", "p99=20ms"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->levels[0].stages[0].from, 100);
  EXPECT_EQ(config->slo->limit, Duration(milliseconds(20)));
}

// A search takes the requests of a trace, and times of its own.
TEST(BenchFlagsTest, ASearchMayTakeTheRequestsOfATrace) {
  const std::string path = TempPath("search.trace");
  std::ofstream(path) << R"({"triad_trace":1,"workload":{"kind":"attend"}})"
                      << "\n{\"tokens\":5}\n";
  const auto config = Parse({"--trace", path, "--find-max", "--slo", "p99=20ms", "--duration", "2s"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->levels[0].stages[0].length, Duration(std::chrono::seconds(2)));
}

// -- Which flags go with which ---------------------------------------------------------------------------------------

TEST(BenchFlagRulesTest, EveryFlagIsInOneOfThem) {
  CLI::App app;
  BenchFlags flags;
  AddBenchFlags(app, flags);
  std::set<std::string> named;
  for (const FlagRule& rule : BenchFlagRules()) named.insert(rule.flags.begin(), rule.flags.end());
  for (const CLI::Option* option : app.get_options()) {
    if (option == app.get_help_ptr()) continue;
    EXPECT_EQ(named.count(option->get_name()), 1u) << option->get_name();
  }
}

// `flag` with a value that it takes.
std::vector<std::string> WithValue(const std::string& flag) {
  for (const char* value : {"1", "1s", "f16", "poisson"}) {
    CLI::App app;
    BenchFlags flags;
    AddBenchFlags(app, flags);
    CLI::Option* option = app.get_option(flag);
    if (option->get_items_expected_max() == 0) return {flag};
    try {
      option->add_result(value)->run_callback();
      return {flag, value};
    } catch (const CLI::ParseError&) {  // of another kind
    }
  }
  ADD_FAILURE() << "no value for " << flag;
  return {};
}

// That a command line of `given` and `flag` is refused in words about `flag` and `other`, and nothing sent.
void ExpectRefused(const std::string& flag, const std::string& other, const std::vector<std::string>& given) {
  std::vector<std::string> line = {"bench"};
  for (const std::string& each : given) {
    if (each.empty()) continue;
    const std::vector<std::string> words = WithValue(each);
    line.insert(line.end(), words.begin(), words.end());
  }
  const std::vector<std::string> words = WithValue(flag);
  line.insert(line.end(), words.begin(), words.end());
  ToolRun tool;
  EXPECT_EQ(tool.Run(line), kExitUsage) << ::testing::PrintToString(line);
  EXPECT_THAT(tool.err.str(), AllOf(HasSubstr(flag), HasSubstr(other))) << ::testing::PrintToString(line);
  EXPECT_FALSE(tool.target.has_value()) << "nothing was sent";
}

TEST(BenchFlagRulesTest, AFlagWithoutEffectIsRefusedAndTheOthersNamed) {
  for (const FlagRule& rule : BenchFlagRules()) {
    for (const std::string& flag : rule.flags) {
      for (const std::string& excluded : rule.excludes) ExpectRefused(flag, excluded, {rule.when, excluded});
      if (!rule.needs.empty()) ExpectRefused(flag, rule.needs[0], {rule.when});
    }
  }
}

TEST(BenchFlagRulesTest, WhatFitsIsTaken) {
  for (const std::vector<std::string>& line : {
           std::vector<std::string>{"--rate", "5", "--arrivals", "poisson", "--max-in-flight", "3", "--late-after",
                                    "1s"},
           {"--find-max", "--slo", "p99=1s", "--arrivals", "poisson", "--max-in-flight", "3", "--find-max-precision",
            "1"},
           {"--layer", "demo", "--layer-version", "3", "--dtype", "bf16", "--keep", "0.5", "--kv-len", "9"},
           {"--requests", "9", "--duration", "5s", "--concurrency", "3"},
           {"--layer", "demo", "--causal=false"},
       }) {
    EXPECT_TRUE(Parse(line).ok()) << ::testing::PrintToString(line);
  }
}

TEST(BenchCommandTest, LengthsOfAContextForALayerThatTakesNoneAreRefused) {
  ToolRun tool;
  EXPECT_EQ(tool.Run({"bench", "--layer", "demo", "--kv-len", "9"}), kExitUsage);
  EXPECT_THAT(tool.err.str(), HasSubstr("--kv-len is for a layer that takes a context; demo takes none"));
}

TEST(BenchCommandTest, WhatMakesNoSenseIsAUsageErrorAndSendsNothing) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> lines = {
      {{"--concurrency", "0"}, "--concurrency must be"},
      {{"--concurrency", "4", "--rate", "5"}, "--rate"},
      {{"--rate", "fast"}, "--rate must be"},
      {{"--tokens", "none"}, "--tokens must be"},
      {{"--heads", "8", "--kv-heads", "3"}, "--kv-heads must divide --heads; was 3 of 8"},
      {{"--keep", "0"}, "--keep must be"},
      {{"--duration", "soon"}, "--duration"},
      {{"--timeout", "0s"}, "--timeout"},
      {{"--slo", "20ms"}, "--slo must be"},
      {{"--find-max"}, "--find-max needs an --slo"},
      {{"--find-max", "--slo", "p99=1ms", "--rate", "ramp:1:9"}, "--find-max begins at one constant --rate"},
      {{"--record", "r", "--concurrency", "1:3:1"}, "--record writes one run"},
      {{"--connections", "0"}, "--connections must be >= 1"},
      {{"--trace", "absent.trace"}, "absent.trace: No such file or directory"},
      {{"--tokens", "2000000"}, "the query of the longest request, FLOAT32 [1, 2000000, 8, 64], must have at most"},
      {{"--tokens", "uniform:1:65536", "--keep", "0.5"}, "the keep of the longest request"},
      {{"--csv", "none/at/all.csv"}, "--csv cannot be written: none/at/all.csv"},
      {{"--html", ::testing::TempDir()}, "--html cannot be written"},
      {{"--record", "none/r.trace"}, "--record cannot be written"},
      {{"--csv", "-"}, "--csv: must be a file: - is not standard output"},
      {{"--html", "-"}, "--html: must be a file: - is not standard output"},
      {{"--record", "-"}, "--record: must be a file: - is not standard output"},
      {{"--csv", "report", "--html", "./report"}, "--html would overwrite the file of --csv"},
      {{"--trace", "absent.trace", "--heads", "4"}, "--heads"},
  };
  for (auto [line, message] : lines) {
    ToolRun tool;
    line.insert(line.begin(), "bench");
    EXPECT_EQ(tool.Run(line), kExitUsage) << ::testing::PrintToString(line);
    EXPECT_THAT(tool.err.str(), HasSubstr(message));
    EXPECT_FALSE(tool.target.has_value()) << "nothing was sent";
  }
}

TEST(BenchCommandTest, AServerThatIsNotThereExitsWith1) {
  ToolRun tool;
  tool.connection->failure = absl::UnavailableError("connection refused");
  EXPECT_EQ(tool.Run({"bench", "--target", "far:1"}), kExitFailed);
  EXPECT_THAT(tool.err.str(),
              AllOf(HasSubstr("UNAVAILABLE: far:1: connection refused"), HasSubstr("No server answers at far:1.")));
}

TEST(BenchCommandTest, OfSeveralServersTheOneThatIsNotThereIsNamed) {
  ToolRun tool;
  tool.failing_target = "far:2";
  EXPECT_EQ(tool.Run({"bench", "--target", "near:1,far:2,near:3"}), kExitFailed);
  EXPECT_THAT(tool.err.str(),
              AllOf(HasSubstr("UNAVAILABLE: far:2: "), HasSubstr("No server answers there."), Not(HasSubstr("near"))));
}

}  // namespace
}  // namespace triad::tools
