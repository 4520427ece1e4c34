// `triad bench` against a whole server, by its command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "client/tools/bench/trace_file.h"
#include "client/tools/tool.h"
#include "nlohmann/json.hpp"
#include "tests/support/server_fixture.h"
#include "tests/support/temp_path.h"
#include "triad/connection.h"

namespace triad::tools {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// A server with the layer "demo", and the tool beside it.
class BenchTest : public ::testing::Test {
 protected:
  static ServerOptions Options() {
    ServerOptions options = TestServerOptions();
    options.demo_layer = true;
    return options;
  }

  // Runs `triad bench`, without a warm-up unless there is one in `arguments`; returns its exit code.
  int Run(std::vector<std::string> arguments, const std::string& target) {
    arguments.insert(arguments.begin(), {"bench", "--target", target});
    if (std::find(arguments.begin(), arguments.end(), "--warmup") == arguments.end()) {
      arguments.insert(arguments.end(), {"--warmup", "0s"});
    }
    out_.str("");
    err_.str("");
    const World world = {
        .out = out_, .err = err_, .show_progress = false, .connect = client::MakeConnection, .catch_interrupt = [this] {
          if (interrupted_) interrupt_.request_stop();
          return interrupt_.get_token();
        }};
    return RunTriad(std::move(arguments), world);
  }
  int Run(std::vector<std::string> arguments) { return Run(std::move(arguments), server_.target()); }

  // The only level of a run with --json that exits with 0.
  Json Level(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    EXPECT_EQ(Run(std::move(arguments)), kExitOk) << err_.str();
    const Json report = Json::parse(out_.str());
    EXPECT_EQ(report["levels"].size(), 1u);
    return report["levels"][0];
  }

  TestServer server_{Options()};
  bool interrupted_ = false;  // as soon as the runs begin
  std::stop_source interrupt_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(BenchTest, AClosedLoopMeasuresAndChecks) {
  const Json level = Level({"--concurrency", "4", "--requests", "50"});
  EXPECT_EQ(level["results"], 50);
  EXPECT_EQ(level["codes"]["OK"]["count"], 50);
  EXPECT_EQ(level["check"]["right"], 8);
  EXPECT_LT(level["check"]["largest_excess"], 1);
  EXPECT_GT(level["server_compute"]["p50_ns"], 0);
  EXPECT_GE(level["latency"]["p50_ns"], level["latency_from_sent"]["p50_ns"]);
  EXPECT_EQ(server_.Metric(R"(triad_requests_total{code="OK",method="Attend"})"), 50 + 8);
}

TEST_F(BenchTest, TypesMasksAndGroupedHeadsAreChecked) {
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    const Json level =
        Level({"--requests", "12",      "--dtype",    dtype,      "--causal",     "--keep",   "0.7",
               "--heads",    "4",       "--kv-heads", "2",        "--head-dim",   "24",       "--v-head-dim",
               "16",         "--batch", "2",          "--tokens", "uniform:1:90", "--kv-len", "zipf:100:130",
               "--check",    "12"});
    EXPECT_EQ(level["check"]["right"], 12) << dtype << level["check"];
  }
}

TEST_F(BenchTest, ForwardOverStreamsBringsTheBytesOfTheSameRequestAlone) {
  const Json level = Level({"--layer", "demo", "--stream", "--connections", "2", "--concurrency", "8", "--requests",
                            "40", "--tokens", "uniform:1:20", "--check", "40"});
  EXPECT_EQ(level["results"], 40);
  EXPECT_EQ(level["check"]["right"], 40) << level["check"];
  EXPECT_EQ(server_.Metric(R"(triad_requests_total{code="OK",method="ForwardStream"})"), 40);
}

TEST_F(BenchTest, AttendOverAStreamInAnOpenLoopSendsAllThatIsDue) {
  const Json level = Level({"--stream", "--rate", "200", "--arrivals", "poisson", "--requests", "20", "--late-after",
                            "1h", "--slo", "p50=1h"});
  EXPECT_EQ(level["due"], 20);
  EXPECT_EQ(level["results"], 20);
  EXPECT_EQ(level["slo"]["met"], true);
  EXPECT_EQ(level["dropped"], 0);
}

TEST_F(BenchTest, SeveralTargetsTakeTurns) {
  const TestServer other(Options());
  EXPECT_EQ(Run({"--rate", "500", "--late-after", "1h", "--requests", "20", "--check", "0"},
                server_.target() + "," + other.target()),
            kExitOk)
      << err_.str();
  const char* served = R"(triad_requests_total{code="OK",method="Attend"})";
  EXPECT_EQ(server_.Metric(served), 10);
  EXPECT_EQ(other.Metric(served), 10);
}

TEST_F(BenchTest, ARangeHasARowPerLevel) {
  const std::string csv = TempPath("levels.csv");
  const std::string html = TempPath("levels.html");
  EXPECT_EQ(Run({"--concurrency", "1:3:1", "--requests", "10", "--csv", csv, "--html", html}), kExitOk) << err_.str();
  for (const char* row : {"\nconcurrency 1 ", "\nconcurrency 2 ", "\nconcurrency 3 "}) {
    EXPECT_THAT(out_.str(), HasSubstr(row));
  }
  std::stringstream rows;
  rows << std::ifstream(csv).rdbuf();
  EXPECT_THAT(rows.str(), HasSubstr("\nconcurrency 3,"));
  std::stringstream page;
  page << std::ifstream(html).rdbuf();
  EXPECT_THAT(page.str(), HasSubstr("<h2>concurrency 3</h2>"));
}

TEST_F(BenchTest, AFullDiskIsNoBusyServer) {
  for (const char* flag : {"--csv", "--html", "--record"}) {
    EXPECT_EQ(Run({"--rate", "1000", "--requests", "2", flag, "/dev/full"}), kExitFailed) << flag;
    EXPECT_THAT(err_.str(), testing::EndsWith("No space left on device\n")) << flag;
  }
}

TEST_F(BenchTest, ARecordedTraceSendsTheSameRequestsAtTheSameTimes) {
  const std::string first = TempPath("first.trace");
  const std::string second = TempPath("second.trace");
  ASSERT_EQ(Run({"--rate", "500", "--arrivals", "poisson", "--requests", "25", "--tokens", "uniform:1:40",
                 "--late-after", "1h", "--record", first}),
            kExitOk)
      << err_.str();
  ASSERT_EQ(Run({"--trace", first, "--late-after", "1h", "--record", second}), kExitOk) << err_.str();
  const auto recorded = ReadTrace(first);
  const auto replayed = ReadTrace(second);
  ASSERT_TRUE(recorded.ok() && replayed.ok()) << recorded.status() << replayed.status();
  ASSERT_EQ(recorded->entries.size(), 25u);
  ASSERT_EQ(replayed->entries.size(), 25u);
  EXPECT_EQ(WorkloadJson(replayed->workload), WorkloadJson(recorded->workload));
  for (size_t i = 0; i < recorded->entries.size(); ++i) {
    EXPECT_EQ(replayed->entries[i].due, recorded->entries[i].due) << i;
    EXPECT_EQ(replayed->entries[i].request, recorded->entries[i].request) << i;
  }
}

TEST_F(BenchTest, ALogOfLengthsIsSentAsALoadSays) {
  const std::string path = TempPath("lengths.trace");
  std::ofstream(path) << R"({"triad_trace":1,"workload":{"kind":"attend"}})"
                      << "\n{\"tokens\":3}\n{\"tokens\":5}\n";
  const std::string recorded = TempPath("sent.trace");
  EXPECT_EQ(Level({"--trace", path, "--concurrency", "1", "--requests", "3", "--record", recorded})["results"], 3);
  const auto sent = ReadTrace(recorded);
  ASSERT_TRUE(sent.ok()) << sent.status();
  std::vector<int64_t> lengths;
  for (const TraceEntry& entry : sent->entries) lengths.push_back(entry.request.tokens);
  EXPECT_EQ(lengths, (std::vector<int64_t>{3, 5, 3}));
}

// Two runs of a trace at Poisson times differ in their seed only.
TEST_F(BenchTest, ASeedBesideATraceDrawsTheTimes) {
  const std::string path = TempPath("lengths.trace");
  std::ofstream(path) << R"({"triad_trace":1,"workload":{"kind":"attend"}})"
                      << "\n{\"tokens\":3}\n";
  std::vector<Duration> firsts;
  for (const char* seed : {"7", "7", "8"}) {
    const std::string recorded = TempPath("sent.trace");
    ASSERT_EQ(Run({"--trace", path, "--rate", "500", "--arrivals", "poisson", "--seed", seed, "--requests", "2",
                   "--late-after", "1h", "--record", recorded}),
              kExitOk)
        << err_.str();
    firsts.push_back(ReadTrace(recorded)->entries[0].due);
  }
  EXPECT_EQ(firsts[0], firsts[1]);
  EXPECT_NE(firsts[0], firsts[2]);
}

TEST_F(BenchTest, TheSetupSaysWhenAndForHowLong) {
  EXPECT_EQ(Run({"--duration", "1h", "--requests", "5", "--timeout", "7s", "--json"}), kExitOk) << err_.str();
  const Json setup = Json::parse(out_.str())["setup"];
  EXPECT_THAT(setup["began"].get<std::string>(),
              ::testing::MatchesRegex("2[0-9]+-[0-9]+-[0-9]+ [0-9]+:[0-9]+:[0-9]+ UTC"));
  EXPECT_EQ(setup["duration"], "1h");
  EXPECT_EQ(setup["requests"], 5);
  EXPECT_EQ(setup["warmup"], "0");
  EXPECT_EQ(setup["timeout"], "7s");
}

TEST_F(BenchTest, AGeneratorThatCannotKeepUpFailsTheRunAndSaysWhy) {
  EXPECT_EQ(Run({"--rate", "1000000", "--requests", "1000", "--max-in-flight", "1"}), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("requests were not sent, because --max-in-flight were"));
  EXPECT_THAT(out_.str(), HasSubstr("of 1000 due:")) << "the report is printed even so";
}

TEST_F(BenchTest, RefusalsAreCountedByCodeAndFailOnlyWhenNothingElseCame) {
  ServerOptions options = TestServerOptions();
  options.max_tokens_per_request = 100;
  const TestServer narrow(options);
  EXPECT_EQ(Run({"--tokens", "uniform:1:200", "--requests", "40", "--json"}, narrow.target()), kExitOk) << err_.str();
  const Json level = Json::parse(out_.str())["levels"][0];
  EXPECT_GT(level["codes"]["OK"]["count"], 0);
  EXPECT_GT(level["codes"]["INVALID_ARGUMENT"]["count"], 0);
  EXPECT_EQ(level["codes"]["OK"]["count"].get<int>() + level["codes"]["INVALID_ARGUMENT"]["count"].get<int>(), 40);
  EXPECT_EQ(Run({"--tokens", "200", "--requests", "5"}, narrow.target()), kExitUsage) << "as a wrong command line";
  EXPECT_THAT(err_.str(), HasSubstr("INVALID_ARGUMENT: no request was answered with a result; the first:"));
  EXPECT_THAT(out_.str(), HasSubstr("from due     none\n"));
}

TEST_F(BenchTest, ARunWhoseRequestsAreAllRefusedForGoodEndsEarly) {
  ServerOptions options = TestServerOptions();
  options.max_tokens_per_request = 100;
  const TestServer narrow(options);
  for (const char* load : {"--concurrency", "--rate"}) {
    EXPECT_EQ(Run({load, "100:200:100", "--tokens", "200", "--duration", "10h"}, narrow.target()), kExitUsage);
    EXPECT_THAT(err_.str(), HasSubstr("INVALID_ARGUMENT: ended early: every request was refused"));
    EXPECT_THAT(err_.str(), HasSubstr("max_tokens_per_request"));
    EXPECT_THAT(out_.str(), HasSubstr("refused for good\n"));
  }
}

TEST_F(BenchTest, AnInterruptEndsTheRunsAndPrintsWhatThereIs) {
  interrupted_ = true;
  for (const char* load : {"--concurrency", "--rate"}) {
    EXPECT_EQ(Run({load, "1:3:1", "--duration", "10h", "--json"}), kExitFailed);
    EXPECT_THAT(err_.str(), HasSubstr("CANCELLED: interrupted"));
    const Json levels = Json::parse(out_.str())["levels"];
    ASSERT_EQ(levels.size(), 1u) << "the others were left out";
    EXPECT_EQ(levels[0]["interrupted"], true);
    EXPECT_EQ(levels[0]["latency"]["p50_ns"], nullptr);
  }
  EXPECT_EQ(Run({"--find-max", "--slo", "p99=1s", "--duration", "10h"}), kExitFailed);
  EXPECT_THAT(out_.str(), HasSubstr("interrupted"));
}

TEST_F(BenchTest, AnInterruptBeforeTheFirstRunSaysThatNothingWasMeasured) {
  interrupted_ = true;
  EXPECT_EQ(Run({"--warmup", "10h"}), kExitFailed);
  EXPECT_EQ(out_.str(), "");
  EXPECT_THAT(err_.str(), HasSubstr("CANCELLED: interrupted while warming up; nothing was measured"));
}

TEST_F(BenchTest, ASearchWithoutAnAnswerFails) {
  EXPECT_EQ(Run({"--find-max", "--slo", "p50=1ns", "--duration", "1ms", "--check", "0"}), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("no rate that was tried meets the --slo"));
}

TEST_F(BenchTest, ASearchEndsWhereTheObjectiveIsMissed) {
  // Dropping is a miss: with one request in flight, some rate is too much.
  EXPECT_EQ(Run({"--find-max", "--slo", "p1=1h", "--rate", "20", "--duration", "50ms", "--max-in-flight", "1",
                 "--find-max-precision", "1", "--late-after", "1h", "--check", "1", "--json"}),
            kExitOk)
      << err_.str();
  const Json report = Json::parse(out_.str());
  EXPECT_GT(report["search"]["highest_rate"], 0);
  EXPECT_FALSE(report["search"]["generator_was_the_limit"]) << "the server was";
  EXPECT_GT(report["levels"].size(), 1u);
}

TEST_F(BenchTest, MoreInFlightThanAStreamTakesIsRefused) {
  ServerOptions options = TestServerOptions();
  options.max_stream_items = 4;
  const TestServer narrow(options);
  EXPECT_EQ(Run({"--stream", "--concurrency", "4"}, narrow.target()), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("--concurrency must be below 4 on each stream"));
  EXPECT_EQ(Run({"--stream", "--concurrency", "4", "--connections", "2", "--requests", "20"}, narrow.target()), kExitOk)
      << err_.str();
}

TEST_F(BenchTest, ALayerThatIsNotThereIsNamed) {
  EXPECT_EQ(Run({"--layer", "nobody"}), kExitFailed);
  EXPECT_THAT(err_.str(), HasSubstr("NOT_FOUND"));
}

}  // namespace
}  // namespace triad::tools
