#include "client/tools/tool.h"

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "client/tools/flag_rules.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/unit/tools/fake_connection.h"

namespace triad::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ToolTest, HelpAndVersionSucceed) {
  for (const char* flag : {"--help", "--version"}) {
    ToolRun tool;
    EXPECT_EQ(tool.Run({flag}), kExitOk);
    EXPECT_THAT(tool.out.str(), HasSubstr("triad"));
    EXPECT_EQ(tool.err.str(), "");
  }
}

TEST(ToolTest, ACommandLineThatMakesNoSenseIsAUsageErrorAndSendsNothing) {
  const std::vector<std::vector<std::string>> lines = {
      {},
      {"attent"},
      {"health", "--verbose"},
      {"info", "--timeout", "soon"},
      {"info", "--timeout", "-1s"},
      {"info", "--timeout", "1us"},
      {"bench", "--timeout", "999us"},
      {"attend", "--layout", "heads"},
      {"attend", "--scale", "big"},
      {"completion"},
      {"completion", "tcsh"},
  };
  for (const auto& line : lines) {
    ToolRun tool;
    EXPECT_EQ(tool.Run(line), kExitUsage) << ::testing::PrintToString(line);
    EXPECT_NE(tool.err.str(), "");
    EXPECT_FALSE(tool.target.has_value());
  }
}

TEST(ToolTest, AFaultOfTheCommandLineNamesTheCommandWhoseHelpHelps) {
  for (const auto& [line, command] :
       {std::pair<std::vector<std::string>, std::string>{{"layers", "list", "--bogus"}, "triad layers list"},
        {{"bench", "--arrivals", "poisson"}, "triad bench"},
        {{"bench", "--csv=", "--json"}, "triad bench"},
        {{"attent"}, "triad"},
        {{"layers", "show", "demo"}, "triad layers"},
        {{"--bogus"}, "triad"}}) {
    ToolRun tool;
    EXPECT_EQ(tool.Run(line), kExitUsage);
    EXPECT_THAT(tool.err.str(), AllOf(StartsWith("triad: "), HasSubstr("\n`" + command + " --help` shows what")));
  }
}

TEST(ToolTest, UnknownArgumentsAreListedAsTheyWereGiven) {
  ToolRun tool;
  EXPECT_EQ(tool.Run({"layers", "list", "--one", "--two=2", "demo", "three"}), kExitUsage);
  EXPECT_THAT(tool.err.str(), StartsWith("triad: not known here: --one --two=2 three\n`triad layers list --help`"));
}

TEST(ToolTest, AFlagWithNothingIsOneThatEndsInItsOnlyEqualsSign) {
  EXPECT_EQ(FlagWithNothing("--http="), "--http");
  for (const char* argument : {"", "--", "--http", "--http=x", "--http==", "--http=a=", "-h=", "http=", "="}) {
    EXPECT_EQ(FlagWithNothing(argument), "") << argument;
  }
}

// A command line, and the option that it gives as "".
using EmptyValue = std::pair<std::vector<std::string>, std::string>;

// Adds what there is for each option of the commands of `app`: `--flag ""` and a bare "" where it takes a value,
// `--flag=` wherever it has a name.
void CollectEmptyValues(const CLI::App& app, const std::vector<std::string>& path, std::vector<EmptyValue>& lines) {
  for (const CLI::App* command : app.get_subcommands(/*filter=*/nullptr)) {
    std::vector<std::string> below = path;
    below.push_back(command->get_name());
    CollectEmptyValues(*command, below, lines);
    for (const CLI::Option* option : command->get_options()) {
      const std::string name = option->get_name();
      const auto add = [&](const std::vector<std::string>& words) {
        std::vector<std::string> line = below;
        line.insert(line.end(), words.begin(), words.end());
        lines.emplace_back(std::move(line), name);
      };
      if (option->get_positional()) {
        add({""});
        continue;
      }
      add({name + "="});
      add({name + "=", "next"});  // which is not its value
      if (option->get_items_expected_max() > 0) add({name, ""});
    }
  }
}

// Above all where the default means something else: --rate="$RATE" with no RATE would be a closed loop.
TEST(ToolTest, AnEmptyValueIsRefusedWhereverAValueIsTaken) {
  CLI::App app;
  int exit_code = 0;
  ToolRun unused;
  const World world = unused.world();
  AddCommands(app, world, exit_code);
  std::vector<EmptyValue> lines;
  CollectEmptyValues(app, {}, lines);
  EXPECT_GT(lines.size(), 250u);
  for (const auto& [line, option] : lines) {
    ToolRun tool;
    EXPECT_EQ(tool.Run(line), kExitUsage) << ::testing::PrintToString(line);
    EXPECT_THAT(tool.err.str(), HasSubstr(option)) << ::testing::PrintToString(line);
    EXPECT_FALSE(tool.target.has_value());
  }
}

TEST(ToolTest, ListsAreSeparatedByCommasAndTheHelpSaysSo) {
  ToolRun tool;
  EXPECT_EQ(tool.Run({"attend", "--help"}), kExitOk);
  for (const char* line : {"--query-lengths INT,...", "--sinks FLOAT,..."}) {
    EXPECT_THAT(tool.out.str(), HasSubstr(line));
  }
  ToolRun bench;
  EXPECT_EQ(bench.Run({"bench", "--help"}), kExitOk);
  EXPECT_THAT(bench.out.str(), HasSubstr("--target TEXT,..."));
  for (const std::vector<std::string>& line : {std::vector<std::string>{"attend", "--query-lengths", "5", "3"},
                                               std::vector<std::string>{"bench", "--target", "a:1", "b:2"}}) {
    ToolRun spaces;
    EXPECT_EQ(spaces.Run(line), kExitUsage) << ::testing::PrintToString(line);
  }
}

TEST(ToolTest, EveryItemOfAListIsAValue) {
  const std::vector<std::pair<std::string, std::string>> flags = {
      {"--query-lengths", "3"}, {"--sinks", "0.5"}, {"--target", "a:1"}};
  for (const auto& [flag, item] : flags) {
    for (const std::string& list : {std::string(","), "," + item, item + ",", item + ",," + item}) {
      ToolRun tool;
      EXPECT_EQ(tool.Run({flag == "--target" ? "bench" : "attend", flag + "=" + list}), kExitUsage) << list;
      EXPECT_THAT(tool.err.str(), HasSubstr(flag + ": must be values separated by commas; was " + list));
      EXPECT_FALSE(tool.target.has_value());
    }
  }
  ToolRun no_number;
  EXPECT_EQ(no_number.Run({"attend", "--query-lengths", "3,x"}), kExitUsage);
  EXPECT_THAT(no_number.err.str(), HasSubstr("was 3,x"));
}

TEST(ToolTest, AWordThatIsNoSubcommandIsNamedWithThoseThereAre) {
  ToolRun tool;
  EXPECT_EQ(tool.Run({"attent"}), kExitUsage);
  EXPECT_THAT(tool.err.str(), HasSubstr("no subcommand \"attent\"; there are: attend, forward, "));
  ToolRun nested;
  EXPECT_EQ(nested.Run({"layers", "show", "demo"}), kExitUsage);
  EXPECT_THAT(nested.err.str(), HasSubstr("no subcommand \"show\"; there are: list, get, "));
}

// As awk and cut take them; the longest name too.
TEST(ToolTest, EveryLimitOfInfoIsANameAndAValue) {
  ToolRun tool;
  ASSERT_EQ(tool.Run({"info"}), kExitOk);
  std::istringstream lines(tool.out.str());
  for (std::string line; std::getline(lines, line);) {
    if (!absl::StartsWith(line, " ")) continue;  // what the fake leaves empty
    const std::vector<std::string> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    EXPECT_EQ(fields.size(), 2u) << line;
  }
}

TEST(ToolTest, HealthExitsWithZeroOnlyWhenServing) {
  ToolRun tool;
  EXPECT_EQ(tool.Run({"health"}), kExitOk);
  EXPECT_EQ(tool.out.str(), "SERVING\n");
  ToolRun draining;
  draining.connection->health = client::Health::kNotServing;
  EXPECT_EQ(draining.Run({"health", "--service", "triad.v1.AttentionService"}), kExitFailed);
  EXPECT_EQ(draining.out.str(), "NOT_SERVING\n");
  EXPECT_EQ(draining.connection->asked_service, "triad.v1.AttentionService");
}

TEST(ToolTest, HealthPrintsJson) {
  ToolRun tool;
  EXPECT_EQ(tool.Run({"health", "--json"}), kExitOk);
  EXPECT_EQ(nlohmann::json::parse(tool.out.str()), nlohmann::json({{"service", ""}, {"status", "SERVING"}}));
}

TEST(ToolTest, InfoShowsEveryLimit) {
  ToolRun tool;
  tool.connection->info = {
      .version = "1.2.3",
      .instruction_set = "avx2",
      .kernel = "fused",
      .onednn_version = "2.6.3",
      .threads = 2,
      .limits = {.max_message_bytes = 111, .max_queue_time = absl::Milliseconds(5), .max_batch = 99}};
  EXPECT_EQ(tool.Run({"info"}), kExitOk);
  EXPECT_THAT(
      tool.out.str(),
      AllOf(HasSubstr("instruction_set           avx2\n"), HasSubstr("  max_message_bytes            111\n"),
            HasSubstr("  max_queue_time_ns            5000000\n"), HasSubstr("  max_batch                    99\n")));
}

TEST(ToolTest, InfoPrintsJson) {
  ToolRun tool;
  tool.connection->info.version = "1.2.3\xff";  // not UTF-8: mended, not an error
  tool.connection->info.limits.max_batch = 99;
  EXPECT_EQ(tool.Run({"info", "--json"}), kExitOk);
  const auto document = nlohmann::json::parse(tool.out.str());
  EXPECT_THAT(document["version"].get<std::string>(), HasSubstr("1.2.3"));
  EXPECT_EQ(document["limits"]["max_batch"], 99);
  EXPECT_EQ(document["limits"].size(), 17u);
}

TEST(ToolTest, TargetAndTimeoutReachTheCall) {
  ToolRun tool;
  EXPECT_EQ(tool.Run({"info", "--target", "unix:/run/triad.sock", "--timeout", "1m30s"}), kExitOk);
  EXPECT_EQ(tool.target, "unix:/run/triad.sock");
  EXPECT_EQ(tool.connection->timeout, absl::Seconds(90));
}

TEST(ToolTest, AFailedCallSaysWhatToChange) {
  ToolRun tool;
  tool.connection->failure = absl::UnavailableError("connection refused");
  EXPECT_EQ(tool.Run({"info", "--target", "far:1"}), kExitFailed);
  EXPECT_EQ(tool.out.str(), "");
  EXPECT_THAT(tool.err.str(), AllOf(HasSubstr("UNAVAILABLE: connection refused"),
                                    HasSubstr("No server answers at far:1"), HasSubstr("--target")));
}

TEST(ToolTest, OnlyACallIsToldWhatToChangeAtTheServer) {
  for (const auto code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kResourceExhausted}) {
    ToolRun file, call;
    EXPECT_EQ(PrintError(absl::Status(code, "/full: No space left on device"), kExitFailed, file.world()), kExitFailed);
    EXPECT_EQ(file.err.str(), "triad: " + absl::StatusCodeToString(code) + ": /full: No space left on device\n");
    EXPECT_EQ(PrintCallError(absl::Status(code, "busy"), "far:1", kExitFailed, call.world()), kExitFailed);
    EXPECT_THAT(call.err.str(), ::testing::ContainsRegex("busy\n[A-Z]"));
  }
}

TEST(ToolTest, CompletionKnowsCommandsFlagsAndChoices) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    ToolRun tool;
    EXPECT_EQ(tool.Run({"completion", shell}), kExitOk);
    for (const char* word : {"attend", "forward", "layers", "unload", "layer-version", "health", "info", "completion",
                             "logit-softcap", "tokens_heads heads_tokens packed", "bash zsh fish", "auto reference"}) {
      EXPECT_THAT(tool.out.str(), HasSubstr(word)) << shell;
    }
  }
}

}  // namespace
}  // namespace triad::tools
