#include "server/server_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/reflection.h"

namespace triad {
namespace {

using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Pair;

// Flags are global: each test puts them back.
class ServerOptionsTest : public ::testing::Test {
 protected:
  absl::StatusOr<ServerOptions> Load(std::vector<std::string> arguments, std::vector<std::string> environment = {}) {
    arguments.insert(arguments.begin(), "triad-server");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    std::vector<const char*> variables;
    for (const std::string& variable : environment) variables.push_back(variable.c_str());
    variables.push_back(nullptr);
    return LoadServerOptions(static_cast<int>(argv.size()), argv.data(), variables.data());
  }

 private:
  const absl::FlagSaver saver_;
};

TEST_F(ServerOptionsTest, DefaultsFitTogether) {
  const auto options = Load({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->listen, ElementsAre("127.0.0.1:8470"));
  EXPECT_EQ(options->http_listen, "127.0.0.1:8471");
  EXPECT_TRUE(ResolveServerOptions(ServerOptions()).ok());
}

TEST_F(ServerOptionsTest, FlagWinsOverEnvironmentOverDefault) {
  const auto options = Load({"--max_batch=5"}, {"TRIAD_MAX_BATCH=6", "TRIAD_MAX_HEAD_DIM=7", "HOME=/nowhere"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->max_batch, 5);
  EXPECT_EQ(options->max_head_dim, 7);
  EXPECT_EQ(options->max_streams, ServerOptions().max_streams);
}

TEST_F(ServerOptionsTest, AnUnknownVariableIsAnErrorThatNamesIt) {
  const auto options = Load({}, {"TRIAD_MAX_HEADDIM=7"});
  ASSERT_FALSE(options.ok());
  EXPECT_THAT(std::string(options.status().message()), HasSubstr("TRIAD_MAX_HEADDIM"));
  EXPECT_FALSE(Load({}, {"TRIAD_FLAGFILE=x"}).ok()) << "a flag of absl's own is none of the server's";
  EXPECT_TRUE(Load({}, {"TRIAD_TARGET=unix:/x"}).ok())
      << "the command-line tool's variable is not meant for the server";
}

TEST_F(ServerOptionsTest, AnUnreadableVariableIsAnErrorThatNamesItsValue) {
  const auto options = Load({}, {"TRIAD_THREADS=many"});
  ASSERT_FALSE(options.ok());
  EXPECT_THAT(std::string(options.status().message()), HasSubstr("many"));
}

TEST_F(ServerOptionsTest, AnArgumentThatIsNotUnderstoodIsAnErrorThatNamesIt) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--bogus"}, "there is no flag --bogus"},
      {{"--bogus=3"}, "there is no flag --bogus"},
      {{"--bogus", "3"}, "there is no flag --bogus"},
      {{"--nothreads"}, "there is no flag --nothreads"},
      {{"--flagfile=x"}, "there is no flag --flagfile"},
      {{"--threads=x"}, "--threads cannot be \"x\""},
      {{"--threads"}, "--threads needs a value"},
      {{"--demo_layer=maybe"}, "--demo_layer cannot be \"maybe\""},
      {{"--demo_layer", "false"}, "arguments are flags only; was \"false\""},
      {{"serve"}, "arguments are flags only; was \"serve\""},
      {{"--"}, "there is no flag --"},
  };
  for (const auto& [arguments, message] : cases) {
    const absl::Status status = Load(arguments).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST_F(ServerOptionsTest, AFlagMayBeWrittenInAnyOfTheUsualWays) {
  const auto options = Load({"-threads", "3", "--max_batch=5", "--allow_layer_admin", "--nodemo_layer"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->threads, 3);
  EXPECT_EQ(options->max_batch, 5);
  EXPECT_TRUE(options->allow_layer_admin);
  EXPECT_FALSE(options->demo_layer);
}

TEST_F(ServerOptionsTest, ListenMayBeRepeatedOrHoldSeveral) {
  const auto options = Load({"--listen=a:1,b:2", "--threads=3", "--listen", "unix:/c"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->listen, ElementsAre("a:1", "b:2", "unix:/c"));
  EXPECT_EQ(options->threads, 3);
  const auto from_environment = Load({}, {"TRIAD_LISTEN=x:1,y:2"});
  ASSERT_TRUE(from_environment.ok());
}

TEST_F(ServerOptionsTest, LayersMayBeRepeatedOrHoldSeveral) {
  const auto options = Load({"--layer_dir=/layers", "--layers=a,b/c@2", "--layers", "d@1"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->layers, ElementsAre("a", "b/c@2", "d@1"));
  EXPECT_TRUE(options->demo_layer);
  EXPECT_FALSE(options->allow_layer_admin);
}

TEST_F(ServerOptionsTest, OneAddressHasHalfOfWhateverAllHaveUnlessToldOtherwise) {
  const auto shares = [](const absl::StatusOr<ServerOptions>& options) {
    return std::pair(options->max_peer_in_flight_requests, options->max_peer_in_flight_bytes);
  };
  constexpr int64_t kGib = int64_t{1} << 30;
  EXPECT_THAT(shares(Load({})), Pair(2048, kGib));
  EXPECT_THAT(shares(Load({"--max_in_flight_requests=300"}, {"TRIAD_MAX_IN_FLIGHT_BYTES=1610612736"})),
              Pair(150, 3 * kGib / 4));
  EXPECT_THAT(shares(Load({"--max_in_flight_requests=1"})), Pair(1, Gt(1))) << "0 would be no limit";
  EXPECT_THAT(shares(Load({"--max_peer_in_flight_requests=0", "--max_peer_in_flight_bytes=7"})), Pair(0, 7));
}

TEST_F(ServerOptionsTest, ResolvingAgainChangesNothing) {
  const auto once = Load({"--max_in_flight_requests=300"});
  EXPECT_EQ(DescribeServerOptions(*ResolveServerOptions(*once)), DescribeServerOptions(*once));
}

TEST_F(ServerOptionsTest, DescribesEveryFlagAndHelpExplainsIt) {
  char program[] = "triad-server";
  char help[] = "--help";
  char* argv[] = {program, help};
  const std::string text = AnswerForHelpFlags(2, argv).value_or("");
  for (const auto& [flag, value] : DescribeServerOptions(ServerOptions())) {
    EXPECT_THAT(text, HasSubstr("--" + flag + "=" + value + "\n"));
  }
  EXPECT_EQ(AnswerForHelpFlags(1, argv), std::nullopt);
}

TEST_F(ServerOptionsTest, TakesAnIpv6HostInBrackets) {
  const auto options = Load({"--listen=[::1]:0", "--http_listen=[fe80::1%eth0]:8471"});
  EXPECT_TRUE(options.ok()) << options.status();
}

struct BadOption {
  const char* name;
  void (*spoil)(ServerOptions&);
  const char* words;
};

class BadServerOptionTest : public ::testing::TestWithParam<BadOption> {};

TEST_P(BadServerOptionTest, IsRefusedByName) {
  ServerOptions options;
  GetParam().spoil(options);
  const absl::Status status = ResolveServerOptions(options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().words));
}

INSTANTIATE_TEST_SUITE_P(
    Each, BadServerOptionTest,
    ::testing::Values(
        BadOption{"NoAddress", [](ServerOptions& o) { o.listen.clear(); }, "--listen"},
        BadOption{"NoPort", [](ServerOptions& o) { o.listen = {"localhost"}; }, "\"localhost\""},
        BadOption{"NoHost", [](ServerOptions& o) { o.listen = {":80"}; }, "\":80\""},
        BadOption{"Ipv6WithoutBrackets", [](ServerOptions& o) { o.listen = {"::1:80"}; }, "in brackets"},
        BadOption{"HalfABracket", [](ServerOptions& o) { o.listen = {"[::1:80"}; }, "in brackets"},
        BadOption{"TwoAddressesInOne", [](ServerOptions& o) { o.listen = {"a:1,b:2"}; }, "one host:port"},
        BadOption{"TwoAddressesForPages", [](ServerOptions& o) { o.http_listen = "a:1,b:2"; },
                  "--http_listen must be one host:port"},
        BadOption{"TwoPortsForPages", [](ServerOptions& o) { o.http_listen = "80,b:2"; }, "\"80,b:2\""},
        BadOption{"SpaceBeforePort", [](ServerOptions& o) { o.http_listen = "localhost: 80"; }, "\"localhost: 80\""},
        BadOption{"SignedPort", [](ServerOptions& o) { o.http_listen = "localhost:+80"; }, "\"localhost:+80\""},
        BadOption{"PortWithSuffix", [](ServerOptions& o) { o.http_listen = "localhost:80s"; }, "\"localhost:80s\""},
        BadOption{"NoPortAtAll", [](ServerOptions& o) { o.http_listen = "localhost:"; }, "\"localhost:\""},
        BadOption{"HugePort", [](ServerOptions& o) { o.http_listen = "localhost:65536"; }, "--http_listen"},
        BadOption{"EmptyPath", [](ServerOptions& o) { o.listen = {"unix:"}; }, "path"},
        BadOption{"NegativeThreads", [](ServerOptions& o) { o.threads = -1; }, "--threads"},
        BadOption{"MessagePastProtobuf", [](ServerOptions& o) { o.max_message_bytes = int64_t{1} << 31; },
                  "--max_message_bytes must lie between 1024 and 2147483647; was 2147483648"},
        BadOption{"ManyTokens", [](ServerOptions& o) { o.max_tokens_per_request = (int64_t{1} << 53) + 1; },
                  "--max_tokens_per_request must lie between 1 and 16777216; was 9007199254740993"},
        BadOption{"VeryNegative", [](ServerOptions& o) { o.max_weights_bytes = -1234567890123; },
                  "--max_weights_bytes must be at least 0; was -1234567890123"},
        BadOption{"EndlessFlop", [](ServerOptions& o) { o.max_inline_flop = std::numeric_limits<double>::infinity(); },
                  "--max_inline_flop must be finite and at least 0; was inf"},
        BadOption{"TooNice", [](ServerOptions& o) { o.compute_niceness = 20; },
                  "--compute_niceness must lie between 0 and 19; was 20"},
        BadOption{"FlightBelowMessage", [](ServerOptions& o) { o.max_in_flight_bytes = 4096; }, "--max_message_bytes"},
        BadOption{"QuotaBelowMessage", [](ServerOptions& o) { o.grpc_memory_bytes = 4096; }, "--grpc_memory_bytes"},
        BadOption{"NoQueueTime", [](ServerOptions& o) { o.max_queue_time = absl::ZeroDuration(); }, "--max_queue_time"},
        BadOption{"EndlessDrain", [](ServerOptions& o) { o.drain_timeout = absl::InfiniteDuration(); },
                  "--drain_timeout"},
        BadOption{"NanFlop", [](ServerOptions& o) { o.max_batch_flop = std::numeric_limits<double>::quiet_NaN(); },
                  "--max_batch_flop"},
        BadOption{"NoStreamItems", [](ServerOptions& o) { o.max_stream_items = 0; }, "--max_stream_items"},
        BadOption{"LayersWithoutDirectory", [](ServerOptions& o) { o.layers = {"a"}; }, "--layer_dir"},
        BadOption{"LayerNameThatLeadsOut",
                  [](ServerOptions& o) {
                    o.layer_dir = "/layers";
                    o.layers = {"../a"};
                  },
                  "--layers"},
        BadOption{"NegativePeerRequests", [](ServerOptions& o) { o.max_peer_in_flight_requests = -2; },
                  "--max_peer_in_flight_requests"},
        BadOption{"NegativePeerBytes", [](ServerOptions& o) { o.max_peer_in_flight_bytes = -2; },
                  "--max_peer_in_flight_bytes"},
        BadOption{"NoHeadSequences", [](ServerOptions& o) { o.max_head_sequences = 0; }, "--max_head_sequences"},
        BadOption{"NoLayerLoads", [](ServerOptions& o) { o.max_layer_loads = 0; }, "--max_layer_loads"},
        BadOption{"NegativeLayerWeights", [](ServerOptions& o) { o.max_layer_weights_bytes = -1; },
                  "--max_layer_weights_bytes"},
        BadOption{"LogFormat", [](ServerOptions& o) { o.log_format = "xml"; }, "xml"},
        BadOption{"InstructionSet", [](ServerOptions& o) { o.instruction_set = "mmx"; }, "mmx"},
        BadOption{"Kernel", [](ServerOptions& o) { o.kernel = "cuda"; }, "cuda"}),
    [](const ::testing::TestParamInfo<BadOption>& tested) { return std::string(tested.param.name); });

TEST(MaxCallsPerConnectionTest, IsTwiceWhatMayBeInFlightAndFitsAnInt) {
  const auto calls = [](int64_t in_flight) {
    ServerOptions options;
    options.max_in_flight_requests = in_flight;
    return MaxCallsPerConnectionOf(options);
  };
  EXPECT_EQ(calls(1), 8192);
  EXPECT_EQ(calls(SchedulerOptions().max_in_flight_requests), 8192);
  EXPECT_EQ(calls(10'000), 20'000);
  EXPECT_EQ(calls((int64_t{1} << 30) - 1), std::numeric_limits<int>::max() - 1);
  EXPECT_EQ(calls(std::numeric_limits<int64_t>::max()), std::numeric_limits<int>::max() - 1);
}

TEST(SchedulerOptionsTest, AreThoseOfTheFlags) {
  ServerOptions options;
  options.compute_niceness = 3;
  options.max_in_flight_bytes = 11;
  options.max_in_flight_requests = 12;
  options.max_queue_time = absl::Nanoseconds(13);
  options.max_batch_tokens = 14;
  options.max_batch_flop = 15;
  options.max_shared_tokens = 16;
  options.max_inline_flop = 17;
  options.max_inline_bytes = 18;
  const SchedulerOptions scheduler = SchedulerOptionsOf(options, /*threads=*/19);
  EXPECT_EQ(scheduler.niceness, 3);
  EXPECT_EQ(scheduler.max_in_flight_bytes, 11);
  EXPECT_EQ(scheduler.max_in_flight_requests, 12);
  EXPECT_EQ(scheduler.max_queue_time, std::chrono::nanoseconds(13));
  EXPECT_EQ(scheduler.max_batch_tokens, 14);
  EXPECT_EQ(scheduler.max_batch_flop, 15);
  EXPECT_EQ(scheduler.max_shared_tokens, 16);
  EXPECT_EQ(scheduler.max_inline_flop, 17);
  EXPECT_EQ(scheduler.max_inline_bytes, 18);
  EXPECT_EQ(scheduler.threads, 19);
}

TEST(ChooseInstructionSetTest, CapsButNeverRaises) {
  ServerOptions options;
  EXPECT_EQ(*ChooseInstructionSet(options, InstructionSet::kAvx512), InstructionSet::kAvx512);
  options.instruction_set = "avx2";
  EXPECT_EQ(*ChooseInstructionSet(options, InstructionSet::kAvx512), InstructionSet::kAvx2);
  EXPECT_FALSE(ChooseInstructionSet(options, InstructionSet::kGeneric).ok());
}

}  // namespace
}  // namespace triad
