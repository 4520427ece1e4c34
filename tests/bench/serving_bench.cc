// What serving costs above a bare gRPC echo: the serving rows that need no overload. Both sides alternate within
// seconds, with a probe of the cores around each; a repetition whose probes did not find both cores is made again.
//
//   triad_bench_serving PATH_OF_triad-server                      all rows, over a unix socket and loopback
//   triad_bench_serving PATH_OF_triad-server --row tiny_1 --json  one of them, for machines
//
// Three sides: `triad` (the client library, the server), `echo` (prebuilt bytes to a server that answers with prebuilt
// bytes), and `client` (the client library to that echo server), which tells the client's share from the server's.
// Ratios are of triad to echo: the median over the repetitions of p50 (smaller is better) or requests/s (larger is).
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/src/attend_messages.h"
#include "client/src/message_slices.h"
#include "client/tools/bench/check_answers.h"
#include "client/tools/bench/load_run.h"
#include "client/tools/json_output.h"
#include "core/base/check.h"
#include "core/base/clock.h"
#include "tests/bench/cores_probe.h"
#include "tests/bench/echo/echo_sender.h"
#include "tests/bench/echo/echo_server.h"
#include "tests/support/child_process.h"
#include "tests/support/server_fixture.h"
#include "triad/allocator.h"
#include "triad/client.h"
#include "triad/v1/attention.pb.h"

namespace triad {
namespace {

using tools::Json;

struct Row {
  const char* name;
  int64_t tokens = 16;
  int64_t kv_len = 16;
  int64_t concurrency = 1;
  bool by_latency = false;  // compares p50; else requests/s
  double bar = 0;           // the ratio: at most it, by latency; at least it, by rate
};

constexpr Row kRows[] = {
    {.name = "tiny_1", .by_latency = true, .bar = 1.4},
    {.name = "tiny_16", .concurrency = 16, .bar = 0.7},
    {.name = "decode_256", .tokens = 1, .kv_len = 256, .bar = 0.7},
    {.name = "decode_4096", .tokens = 1, .kv_len = 4096, .bar = 0.7},
    {.name = "decode_16384", .tokens = 1, .kv_len = 16384, .bar = 0.7},
};

struct Settings {
  std::string server;  // path of triad-server
  std::string row;     // empty: all
  double seconds = 2;  // of each measurement
  int repetitions = 5;
  bool json = false;
};

// What one side of a row did in one repetition.
struct Figure {
  double p50_us = 0;
  double per_second = 0;
};

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string EchoReply(const Row& row) {
  v1::AttendResponse reply;
  v1::Tensor& output = *reply.mutable_output();
  output.set_dtype(v1::FLOAT32);
  for (const int64_t extent : {int64_t{1}, row.tokens, int64_t{8}, int64_t{64}}) output.add_shape(extent);
  output.set_data(std::string(static_cast<size_t>(row.tokens * 8 * 64 * 4), '\0'));
  reply.mutable_timings();
  return reply.SerializeAsString();
}

std::string EncodedRequest(const tools::RequestBuilder& builder, const tools::PlannedRequest& plan) {
  const client::AttendRequest request = builder.Attend(plan);
  grpc::Slice bytes;
  TRIAD_CHECK(client::ToByteBuffer(client::Encode(request)).DumpToSingleSlice(&bytes).ok(), "a valid message");
  return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

// One row over one kind of address: two servers, three senders.
class RowBench {
 public:
  RowBench(const Row& row, const Settings& settings, const std::string& echo_address, const std::string& triad_target)
      : row_(row),
        plan_{.tokens = row.tokens, .kv_len = row.kv_len, .seed = 1},
        builder_(*tools::RequestBuilder::Create({}, plan_)),
        seconds_(settings.seconds),
        echo_process_({"/proc/self/exe", "--serve-echo", echo_address, "--row", row.name}),
        triad_client_(*client::Client::Create({.target = triad_target})),
        triad_(tools::MakeUnarySender(triad_client_, builder_, absl::Seconds(30))),
        echo_(*MakeEchoSender(echo_address, /*connections=*/1, EncodedRequest(builder_, plan_))),
        client_(
            tools::MakeUnarySender(*client::Client::Create({.target = echo_address}), builder_, absl::Seconds(30))) {
    for (tools::RequestSender* sender : {triad_.get(), echo_.get(), client_.get()}) AwaitAnswer(*sender);
    CheckOnce();
  }

  Figure MeasureTriad() { return Measure(*triad_, seconds_); }
  Figure MeasureEcho() { return Measure(*echo_, seconds_); }
  Figure MeasureClient() { return Measure(*client_, seconds_); }

 private:
  Figure Measure(tools::RequestSender& sender, double seconds, int64_t requests = int64_t{1} << 40) {
    tools::RunRecorder recorder({}, RealClock().Now());
    const tools::LoadTools load = {
        .routes = {{.sender = &sender}}, .recorder = recorder, .sample = sample_, .clock = RealClock()};
    tools::RunLoad({.requests = [this] { return plan_; },
                    .max_requests = requests,
                    .concurrency = row_.concurrency,
                    .duration = Duration(static_cast<int64_t>(seconds * 1e9))},
                   load);
    const tools::RunResult result = recorder.Result();
    return {.p50_us = static_cast<double>(result.latency.Percentile(0.5).count()) / 1e3,
            .per_second = result.throughput()};
  }

  // The server is another process, and may not listen yet.
  void AwaitAnswer(tools::RequestSender& sender) {
    const Time give_up = RealClock().Now() + std::chrono::seconds(30);
    while (Measure(sender, /*seconds=*/5, /*requests=*/1).p50_us == 0) {
      TRIAD_CHECK(RealClock().Now() < give_up, "the servers answer within 30 s");
    }
    Measure(sender, /*seconds=*/0.2);  // and warm
  }

  // The answers are those of the reference. Those of the echo servers are not looked at.
  void CheckOnce() {
    tools::AnswerSample fresh(/*size=*/1, /*seed=*/1);
    const auto answer = triad_client_.Attend(builder_.Attend(plan_));
    TRIAD_CHECK(answer.ok(), "the server answers");
    std::vector<tools::SampledAnswer> answers;
    answers.push_back({.request = plan_, .output = answer->output});
    TRIAD_CHECK(tools::CheckAnswers(answers, builder_, {triad_client_}).right == 1, "the answer is right");
  }

  const Row& row_;
  const tools::PlannedRequest plan_;
  const tools::RequestBuilder builder_;
  const double seconds_;
  const ChildProcess echo_process_;
  const client::Client triad_client_;
  const std::unique_ptr<tools::RequestSender> triad_;
  const std::unique_ptr<tools::RequestSender> echo_;
  const std::unique_ptr<tools::RequestSender> client_;
  tools::AnswerSample sample_{/*size=*/0, /*seed=*/1};
};

// Measures a row; prints it, or adds it to `rows`.
void RunRow(const Row& row, const std::string& over, RowBench& bench, const Settings& settings, Json& rows) {
  std::vector<double> ratios, triad, echo, client;
  int thrown_away = 0;
  const auto figure = [&row](const Figure& f) { return row.by_latency ? f.p50_us : f.per_second; };
  while (static_cast<int>(ratios.size()) < settings.repetitions && thrown_away < 4 * settings.repetitions) {
    const double before = ProbeCores();
    const double of_triad = figure(bench.MeasureTriad());
    const double of_echo = figure(bench.MeasureEcho());
    const double after = ProbeCores();
    const double of_client = figure(bench.MeasureClient());
    if (std::min(before, after) < kBothCores) {
      ++thrown_away;
      continue;
    }
    ratios.push_back(of_triad / of_echo);
    triad.push_back(of_triad);
    echo.push_back(of_echo);
    client.push_back(of_client);
  }
  const double ratio = Median(ratios);
  const bool holds = row.by_latency ? ratio <= row.bar : ratio >= row.bar;
  const char* verdict = ratios.empty() ? "unknown" : holds ? "holds" : "short";  // unknown: never both cores
  const char* unit = row.by_latency ? "us" : "/s";
  if (!settings.json) {
    std::cout << absl::StrFormat("%-14s %-9s %10.1f %10.1f %10.1f %-2s %7.3f  %s %.2f %-7s %d of %d\n", row.name, over,
                                 Median(triad), Median(echo), Median(client), unit, ratio,
                                 row.by_latency ? "<=" : ">=", row.bar, verdict, ratios.size(),
                                 ratios.size() + thrown_away)
              << std::flush;
  }
  rows.push_back({{"row", row.name},
                  {"over", over},
                  {"unit", unit},
                  {"triad", triad},
                  {"echo", echo},
                  {"client", client},
                  {"ratios", ratios},
                  {"ratio", ratio},
                  {"bar", row.bar},
                  {"thrown_away", thrown_away}});
}

void RunAll(const Settings& settings) {
  const TemporaryFolder folder;
  Json rows = Json::array();
  if (!settings.json) {
    std::cout << absl::StrFormat("%-14s %-9s %10s %10s %10s    %7s  bar             repetitions kept\n", "row", "over",
                                 "triad", "echo", "client", "ratio");
  }
  for (const std::string over : {"unix", "loopback"}) {
    const bool is_unix = over == "unix";
    const std::string target = is_unix ? absl::StrCat("unix:", (folder.path() / "triad").string()) : FreeAddress();
    const ChildProcess server({settings.server, absl::StrCat("--listen=", target), "--http_listen="});
    for (const Row& row : kRows) {
      if (!settings.row.empty() && settings.row != row.name) continue;
      const std::string echo = is_unix ? absl::StrCat("unix:", (folder.path() / row.name).string()) : FreeAddress();
      RowBench bench(row, settings, echo, target);
      RunRow(row, over, bench, settings, rows);
    }
  }
  if (settings.json) tools::PrintJson({{"rows", rows}}, std::cout);
}

int Main(int argc, char** argv) {
  client::TuneAllocatorForLargeMessages().IgnoreError();  // both sides of both; a gain where there is one
  Settings settings;
  std::string serve_echo;
  CLI::App app("Serving, as a ratio to a bare gRPC echo.");
  app.add_option("server", settings.server, "Path of triad-server");
  app.add_option("--row", settings.row, "Only this row");
  app.add_option("--seconds", settings.seconds, "Of each measurement")->capture_default_str();
  app.add_option("--repetitions", settings.repetitions, "Of each row")->capture_default_str();
  app.add_flag("--json", settings.json, "Print for machines");
  app.add_option("--serve-echo", serve_echo, "Be the echo server at this address (used by the program itself)");
  CLI11_PARSE(app, argc, argv);
  if (serve_echo.empty()) {
    RunAll(settings);
    return 0;
  }
  for (const Row& row : kRows) {
    if (settings.row == row.name) std::cerr << ServeEcho(serve_echo, EchoReply(row)) << "\n";
  }
  return 1;
}

}  // namespace
}  // namespace triad

int main(int argc, char** argv) { return triad::Main(argc, argv); }
