// The command line of `triad bench`: what it asks for, and what it refuses before anything is sent.
#include "client/tools/bench/bench_flags.h"

#include <algorithm>
#include <fstream>
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
using ::testing::HasSubstr;

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

TEST(BenchFlagsTest, ATraceBringsItsWorkloadAndMayBringItsTimes) {
  const std::string path = TempPath("flags.trace");
  std::ofstream(path) << R"({"triad_trace":1,"workload":{"kind":"forward","layer":"demo"}})"
                      << "\n{\"tokens\":5}\n";
  const auto replay = Parse({"--trace", path});
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_EQ(replay->workload.layer, "demo");
  EXPECT_EQ(replay->trace->size(), 1u);
  EXPECT_EQ(replay->levels[0].label, "as recorded");
  const auto faster = Parse({"--trace", path, "--concurrency", "4"});
  ASSERT_TRUE(faster.ok()) << faster.status();
  EXPECT_EQ(faster->levels[0].concurrency, 4);
}

TEST(BenchFlagsTest, ASearchBeginsSomewhere) {
  const auto config = Parse({"--find-max", "--slo", "p99=20ms"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->levels[0].stages[0].from, 100);
  EXPECT_EQ(config->slo->limit, Duration(milliseconds(20)));
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
      {{"--find-max", "--slo", "p99=1ms", "--concurrency", "4"}, "--find-max begins at one constant --rate"},
      {{"--find-max", "--slo", "p99=1ms", "--rate", "ramp:1:9"}, "--find-max begins at one constant --rate"},
      {{"--record", "r", "--concurrency", "1:3:1"}, "--record writes one run"},
      {{"--connections", "0"}, "--connections must be >= 1"},
      {{"--trace", "absent.trace"}, "absent.trace: cannot be read"},
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
  EXPECT_THAT(tool.err.str(), HasSubstr("UNAVAILABLE: far:1: connection refused"));
}

}  // namespace
}  // namespace triad::tools
