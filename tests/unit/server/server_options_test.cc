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

using ::testing::AllOf;
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

TEST_F(ServerOptionsTest, VariablesOfAServiceCalledTriadAreNotMeantForTheServer) {
  for (const char* variable :
       {"SERVICE_HOST=10.0.0.1", "SERVICE_PORT=8470", "SERVICE_PORT_GRPC=8470", "SERVICE_PORT_HTTP_PAGES=8471",
        "PORT=tcp://10.0.0.1:8470", "PORT_8470_TCP=tcp://10.0.0.1:8470", "PORT_8470_TCP_ADDR=10.0.0.1",
        "PORT_8470_TCP_PORT=8470", "PORT_8470_TCP_PROTO=tcp", "PORT_53_UDP=udp://10.0.0.1:53", "PORT_9_SCTP_PORT=9"}) {
    for (const char* service : {"TRIAD_", "TRIAD_CANARY_", "TRIAD_2_EU_WEST_"}) {
      EXPECT_TRUE(Load({}, {std::string(service) + variable}).ok()) << service << variable;
    }
  }
  for (const char* variable : {"TRIAD_PORT=8470", "TRIAD_LISTEN_PORT=8470", "TRIAD_SERVICE=x", "TRIAD_SERVICE_HOSTS=x",
                               "TRIAD_HOST=x", "TRIAD_PORT_GRPC=x", "TRIAD_PORT_8470_HTTP=x",
                               "TRIAD_PORT_8470_TCP_HOST=x", "TRIAD_service_host=x", "TRIAD_XSERVICE_HOST=x"}) {
    EXPECT_THAT(std::string(Load({}, {variable}).status().message()), HasSubstr("there is no flag")) << variable;
  }
}

TEST_F(ServerOptionsTest, AnUnreadableVariableIsAnErrorThatNamesItAndTheRule) {
  EXPECT_EQ(Load({}, {"TRIAD_THREADS=many"}).status(),
            absl::InvalidArgumentError("environment variable TRIAD_THREADS: --threads must be a whole number below "
                                       "2^31; was \"many\""));
  EXPECT_THAT(std::string(Load({}, {"TRIAD_=1"}).status().message()), HasSubstr("there is no flag without a name"));
}

TEST_F(ServerOptionsTest, AnArgumentThatIsNotUnderstoodIsAnErrorThatNamesIt) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--bogus"}, "there is no flag --bogus; `triad-server --help` lists what there is"},
      {{"--bogus=3"}, "there is no flag --bogus;"},
      {{"--bogus", "3"}, "there is no flag --bogus;"},
      {{"--nobogus"}, "there is no flag --nobogus;"},
      {{"--flagfile=x"}, "there is no flag --flagfile;"},
      {{"--max-queue-time=1s"}, "there is no flag --max-queue-time, but --max_queue_time;"},
      {{"--nothreads"}, "--nothreads: only switches have a no, and --threads takes a value"},
      {{"--nothreads=3"}, "--nothreads: only switches have a no, and --threads takes a value"},
      {{"--nodemo_layer=false"}, "--nodemo_layer takes no value; --demo_layer does"},
      {{"--threads"}, "--threads needs a value"},
      {{"--layer_dir", "--threads=1"}, "--layer_dir needs a value"},
      {{"--listen=127.0.0.1:0", "--listen"}, "--listen needs a value"},
      {{"--listen", "--threads=1", "--listen=127.0.0.1:0"}, "--listen needs a value"},
      {{"--demo_layer", "false"}, "a switch takes its value after =; was \"false\""},
      {{"serve"}, "arguments are flags only, and a switch takes its value after =; was \"serve\""},
      {{""}, "was \"\""},
      {{"--"}, "was \"--\""},
      {{"-"}, "was \"-\""},
      {{"--=3"}, "was \"--=3\""},
  };
  for (const auto& [arguments, message] : cases) {
    const absl::Status status = Load(arguments).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST_F(ServerOptionsTest, AValueThatCannotBeReadIsToldItsRule) {
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"threads", "be a whole number below 2^31"},
      {"max_batch", "be a whole number below 2^63"},
      {"max_batch_flop", "be a number"},
      {"max_queue_time", "be a time such as 500ms or 1m30s"},
      {"demo_layer", "be true or false"},
      {"max_message_bytes", "be a number of bytes below 2^63, such as 268435456 or 256MiB"}};
  for (const auto& [flag, rule] : kinds) {
    for (const char* value : {"", "x", "1..5", "99999999999999999999x"}) {
      EXPECT_EQ(Load({"--" + flag + "=" + value}).status(),
                absl::InvalidArgumentError("--" + flag + " must " + rule + "; was \"" + value + "\""));
    }
  }
}

TEST_F(ServerOptionsTest, BytesMayHaveAUnit) {
  for (const auto& [text, bytes] : {std::pair<std::string, int64_t>{"2048", 2048},
                                    {"0KiB", 0},
                                    {"64KiB", 64 << 10},
                                    {"256MiB", 256 << 20},
                                    {"2GiB", int64_t{2} << 30},
                                    {"8589934591GiB", int64_t{8589934591} << 30}}) {
    const auto options = Load({"--max_inline_bytes=" + text});
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->max_inline_bytes, bytes) << text;
  }
  for (const char* text : {"GiB", "-1GiB", "+1GiB", "1.5GiB", "1 GiB", "1GB", "1G", "1gib", "1KiBKiB", "8589934592GiB",
                           "99999999999999999999KiB"}) {
    EXPECT_THAT(std::string(Load({"--max_inline_bytes", text}).status().message()), HasSubstr("256MiB")) << text;
  }
  EXPECT_FALSE(Load({"--max_batch=1KiB"}).ok()) << "they are no bytes";
}

TEST_F(ServerOptionsTest, AFlagMayBeWrittenInAnyOfTheUsualWays) {
  const auto options = Load({"-threads", "3", "--max_batch=5", "--allow_layer_admin", "--nodemo_layer",
                             "--max_peer_in_flight_bytes", "-1", "--max_streams=1", "--max_streams=2"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->threads, 3);
  EXPECT_EQ(options->max_batch, 5);
  EXPECT_TRUE(options->allow_layer_admin);
  EXPECT_FALSE(options->demo_layer);
  EXPECT_EQ(options->max_streams, 2);
}

TEST_F(ServerOptionsTest, ListenMayBeRepeatedOrHoldSeveral) {
  const auto options = Load({"--listen=a:1,b:2", "--threads=3", "--listen", "unix:/c"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->listen, ElementsAre("a:1", "b:2", "unix:/c"));
  EXPECT_EQ(options->threads, 3);
  const auto from_environment = Load({}, {"TRIAD_LISTEN=x:1,y:2"});
  ASSERT_TRUE(from_environment.ok());
  EXPECT_THAT(from_environment->listen, ElementsAre("x:1", "y:2"));
  EXPECT_THAT(Load({"--listen=a:1", "--listen=b:2"}, {"TRIAD_LISTEN=x:1"})->listen, ElementsAre("a:1", "b:2"));
}

TEST_F(ServerOptionsTest, Port0IsAnotherOneEachTime) {
  EXPECT_TRUE(Load({"--listen=127.0.0.1:0,127.0.0.1:0", "--http_listen=127.0.0.1:0"}).ok());
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
  EXPECT_THAT(text, AllOf(HasSubstr("--flag value"), HasSubstr("--noflag"), HasSubstr("256MiB")));
  EXPECT_EQ(AnswerForHelpFlags(1, argv), std::nullopt);
}

TEST_F(ServerOptionsTest, HelpAndVersionMayBeAskedForInAnyOfTheUsualWays) {
  for (const auto& [flag, answer] : {std::pair<std::string, std::string>{"--help", "--listen="},
                                     {"-help", "--listen="},
                                     {"-h", "--listen="},
                                     {"--help=threads", "--listen="},
                                     {"--version", "triad-server "},
                                     {"-version", "triad-server "}}) {
    std::string words[] = {"triad-server", "--threads=3", flag};
    char* argv[] = {words[0].data(), words[1].data(), words[2].data()};
    EXPECT_THAT(AnswerForHelpFlags(3, argv).value_or(""), HasSubstr(answer)) << flag;
  }
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
        BadOption{"AnAddressTwice", [](ServerOptions& o) { o.listen = {"a:1", "b:1", "a:1"}; },
                  "--listen must name each address once; was \"a:1\""},
        BadOption{"ASocketTwice", [](ServerOptions& o) { o.listen = {"unix:/a", "unix:/a"}; }, "\"unix:/a\""},
        BadOption{"AnAddressForPagesToo", [](ServerOptions& o) { o.http_listen = o.listen[0]; },
                  "--http_listen must be no address of --listen; was \"127.0.0.1:8470\""},
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
        BadOption{"AnEmptyLayerName",
                  [](ServerOptions& o) {
                    o.layer_dir = "/layers";
                    o.layers = {"minilm/0", ""};
                  },
                  "--layers must have a name on either side of each comma; was \"minilm/0,\""},
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
