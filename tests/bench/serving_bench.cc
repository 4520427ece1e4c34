// What serving costs above a bare gRPC echo: the serving rows that need no overload. Both sides alternate within
// seconds, with a probe of the cores around each; a repetition whose probes did not find both cores is made again.
//
//   triad_bench_serving PATH_OF_triad-server                      all rows, over a unix socket and loopback
//   triad_bench_serving PATH_OF_triad-server --row tiny_1 --json  one of them, for machines
//
// Three sides: `triad` (the client library, the server), `echo` (prebuilt bytes to a server that answers with prebuilt
// bytes), and `client` (the client library to that echo server), which tells the client's share from the server's.
// Ratios are of triad to echo: the median over the repetitions of p50 (smaller is better) or requests/s (larger is).
// What a call cost in processor time, triad's and echo's, says where the difference is.
#include <unistd.h>

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
#include "tests/bench/process_cpu.h"
#include "tests/support/child_process.h"
#include "tests/support/server_fixture.h"
#include "triad/allocator.h"
#include "triad/client.h"
#include "triad/lock_checks.h"
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
  double server_cpu_us = 0;  // of a call; unlike the two above, neighbours who take a core do not change it much
  double sender_cpu_us = 0;
};

double Figure::*ComparedBy(const Row& row) { return row.by_latency ? &Figure::p50_us : &Figure::per_second; }

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

struct TriadServer {
  std::string target;
  ChildProcess process;
};

// One row over one kind of address: two servers, three senders.
class RowBench {
 public:
  RowBench(const Row& row, const Settings& settings, const std::string& echo_address, const TriadServer& server)
      : row_(row),
        plan_{.tokens = row.tokens, .kv_len = row.kv_len, .seed = 1},
        builder_(*tools::RequestBuilder::Create({}, plan_)),
        seconds_(settings.seconds),
        echo_process_({"/proc/self/exe", "--serve-echo", echo_address, "--row", row.name}),
        triad_pid_(server.process.pid()),
        triad_client_(*client::Client::Create({.target = server.target})),
        triad_(tools::MakeUnarySender(triad_client_, builder_, {.timeout = absl::Seconds(30)})),
        echo_(*MakeEchoSender(echo_address, /*connections=*/1, EncodedRequest(builder_, plan_))),
        client_(tools::MakeUnarySender(*client::Client::Create({.target = echo_address}), builder_,
                                       {.timeout = absl::Seconds(30)})) {
    for (tools::RequestSender* sender : {triad_.get(), echo_.get(), client_.get()}) AwaitAnswer(*sender);
    CheckOnce();
  }

  Figure MeasureTriad() { return Measure(*triad_, seconds_, triad_pid_); }
  Figure MeasureEcho() { return Measure(*echo_, seconds_, echo_process_.pid()); }
  Figure MeasureClient() { return Measure(*client_, seconds_, echo_process_.pid()); }

 private:
  Figure Measure(tools::RequestSender& sender, double seconds, pid_t server) {
    const double server_cpu = ProcessCpuSeconds(server);
    const double sender_cpu = ProcessCpuSeconds(getpid());
    const tools::RunResult result = Send(sender, seconds, kNoLimit);
    const auto per_call_us = [&result](double cpu_seconds) {
      return cpu_seconds / static_cast<double>(result.succeeded()) * 1e6;
    };
    return {.p50_us = static_cast<double>(result.latency.Percentile(0.5).count()) / 1e3,
            .per_second = result.throughput(),
            .server_cpu_us = per_call_us(ProcessCpuSeconds(server) - server_cpu),
            .sender_cpu_us = per_call_us(ProcessCpuSeconds(getpid()) - sender_cpu)};
  }

  static constexpr int64_t kNoLimit = int64_t{1} << 40;
  tools::RunResult Send(tools::RequestSender& sender, double seconds, int64_t requests) {
    tools::RunRecorder recorder({}, RealClock().Now());
    const tools::LoadTools load = {
        .routes = {{.sender = &sender}}, .recorder = recorder, .sample = sample_, .clock = RealClock()};
    tools::RunLoad({.requests = [this] { return plan_; },
                    .max_requests = requests,
                    .concurrency = row_.concurrency,
                    .duration = Duration(static_cast<int64_t>(seconds * 1e9))},
                   load);
    return recorder.Result();
  }

  // The server is another process, and may not listen yet.
  void AwaitAnswer(tools::RequestSender& sender) {
    const Time give_up = RealClock().Now() + std::chrono::seconds(30);
    while (Send(sender, /*seconds=*/5, /*requests=*/1).succeeded() == 0) {
      TRIAD_CHECK(RealClock().Now() < give_up, "the servers answer within 30 s");
    }
    Send(sender, /*seconds=*/0.2, kNoLimit);  // and warm
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
  const pid_t triad_pid_;
  const client::Client triad_client_;
  const std::unique_ptr<tools::RequestSender> triad_;
  const std::unique_ptr<tools::RequestSender> echo_;
  const std::unique_ptr<tools::RequestSender> client_;
  tools::AnswerSample sample_{/*size=*/0, /*seed=*/1};
};

// The figures of one side over the repetitions that count.
struct Side {
  std::vector<Figure> figures;

  double MedianOf(double Figure::*what) const { return Median(All(what)); }
  std::vector<double> All(double Figure::*what) const {
    std::vector<double> values;
    for (const Figure& figure : figures) values.push_back(figure.*what);
    return values;
  }
  Json AsJson() const {
    return {{"p50_us", All(&Figure::p50_us)},
            {"per_second", All(&Figure::per_second)},
            {"server_cpu_us", All(&Figure::server_cpu_us)},
            {"sender_cpu_us", All(&Figure::sender_cpu_us)}};
  }
};

struct Comparison {
  Side triad, echo, client;
  std::vector<double> ratios;
  int thrown_away = 0;  // repetitions that did not have both cores
};

Comparison Compare(const Row& row, RowBench& bench, int repetitions) {
  Comparison all;
  double Figure::*const compared = ComparedBy(row);
  while (static_cast<int>(all.ratios.size()) < repetitions && all.thrown_away < 4 * repetitions) {
    const double before = ProbeCores();
    const Figure triad = bench.MeasureTriad();
    const Figure echo = bench.MeasureEcho();
    const double after = ProbeCores();
    const Figure client = bench.MeasureClient();
    if (std::min(before, after) < CoresNeeded(/*threads=*/2)) {
      ++all.thrown_away;
      continue;
    }
    all.triad.figures.push_back(triad);
    all.echo.figures.push_back(echo);
    all.client.figures.push_back(client);
    all.ratios.push_back(triad.*compared / echo.*compared);
  }
  return all;
}

void PrintHeader(std::ostream& out) {
  out << absl::StrFormat("%-14s %-9s %10s %10s %10s    %7s  %-15s  %-17s  %-17s  repetitions kept\n", "row", "over",
                         "triad", "echo", "client", "ratio", "bar", "server CPU, us", "sender CPU, us");
}

void PrintRow(const Row& row, const std::string& over, const Comparison& all, std::ostream& out) {
  double Figure::*const compared = ComparedBy(row);
  const double ratio = Median(all.ratios);
  const bool holds = row.by_latency ? ratio <= row.bar : ratio >= row.bar;
  const char* verdict = all.ratios.empty() ? "unknown" : holds ? "holds" : "short";  // unknown: never both cores
  const auto cpu = [&all](double Figure::*what) {
    return absl::StrFormat("%.0f : %.0f", all.triad.MedianOf(what), all.echo.MedianOf(what));
  };
  out << absl::StrFormat("%-14s %-9s %10.1f %10.1f %10.1f %-2s %7.3f  %s %.2f %-8s %-17s  %-17s  %d of %d\n", row.name,
                         over, all.triad.MedianOf(compared), all.echo.MedianOf(compared), all.client.MedianOf(compared),
                         row.by_latency ? "us" : "/s", ratio, row.by_latency ? "<=" : ">=", row.bar, verdict,
                         cpu(&Figure::server_cpu_us), cpu(&Figure::sender_cpu_us), all.ratios.size(),
                         all.ratios.size() + static_cast<size_t>(all.thrown_away))
      << std::flush;
}

Json RowAsJson(const Row& row, const std::string& over, const Comparison& all) {
  return {{"row", row.name},
          {"over", over},
          {"by", row.by_latency ? "p50_us" : "per_second"},
          {"triad", all.triad.AsJson()},
          {"echo", all.echo.AsJson()},
          {"client", all.client.AsJson()},
          {"ratios", all.ratios},
          {"ratio", Median(all.ratios)},
          {"bar", row.bar},
          {"thrown_away", all.thrown_away}};
}

void RunAll(const Settings& settings) {
  const TemporaryFolder folder;
  Json rows = Json::array();
  if (!settings.json) PrintHeader(std::cout);
  for (const std::string over : {"unix", "loopback"}) {
    const bool is_unix = over == "unix";
    const std::string target = is_unix ? absl::StrCat("unix:", (folder.path() / "triad").string()) : FreeAddress();
    const TriadServer server{
        .target = target,
        .process = ChildProcess({settings.server, absl::StrCat("--listen=", target), "--http_listen="})};
    for (const Row& row : kRows) {
      if (!settings.row.empty() && settings.row != row.name) continue;
      const std::string echo = is_unix ? absl::StrCat("unix:", (folder.path() / row.name).string()) : FreeAddress();
      RowBench bench(row, settings, echo, server);
      const Comparison all = Compare(row, bench, settings.repetitions);
      if (!settings.json) PrintRow(row, over, all, std::cout);
      rows.push_back(RowAsJson(row, over, all));
    }
  }
  if (settings.json) tools::PrintJson({{"rows", rows}}, std::cout);
}

int Main(int argc, char** argv) {
  // Both sides of both, as the server does for itself; gains where there are any.
  client::TuneAllocatorForLargeMessages().IgnoreError();
  client::TurnOffLockOrderChecks();
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
