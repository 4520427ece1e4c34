#include "client/tools/bench/bench_command.h"

#include <functional>
#include <memory>
#include <ostream>
#include <stop_token>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/tools/bench/bench.h"
#include "client/tools/bench/bench_flags.h"
#include "client/tools/bench/bench_report.h"
#include "client/tools/json_output.h"
#include "client/tools/output_files.h"
#include "client/tools/progress.h"
#include "core/base/clock.h"
#include "core/tensor/file_bytes.h"

namespace triad::tools {
namespace {

absl::StatusOr<BenchReport> MakeRuns(BenchConfig config, const World& world) {
  config.began = absl::Now();
  auto bench = Bench::Create(std::move(config), world.connect, RealClock());
  if (!bench.ok()) return bench.status();
  Progress progress(world.err, world.show_progress);
  return (*bench)->Run([&progress](std::function<std::string()> stage) { progress.Enter(std::move(stage)); },
                       world.catch_interrupt ? world.catch_interrupt() : std::stop_token());
}

absl::Status Publish(const BenchReport& report, const BenchFlags& flags, std::ostream& out) {
  if (flags.json) {
    PrintJson(ReportJson(report), out);
  } else {
    PrintReport(report, out);
  }
  absl::Status status;
  if (!flags.csv.empty()) status.Update(WriteFile(flags.csv, {ReportCsv(report)}));
  if (!flags.html.empty()) status.Update(WriteFile(flags.html, {ReportHtml(report)}));
  return status;
}

// Whether runs ended with `status` because of the file at `path` that they write, and not because of a call.
bool IsAboutFile(const absl::Status& status, const std::string& path) {
  return !path.empty() && absl::StartsWith(status.message(), absl::StrCat(path, ": "));
}

int RunBench(const BenchFlags& flags, const World& world) {
  // Of several, the error names the one that it is about.
  const std::string target = flags.config.targets.size() == 1 ? flags.config.targets[0] : "";
  const auto config = ToConfig(flags);
  if (!config.ok()) return PrintError(config.status(), kExitUsage, world);
  const absl::Status writable =
      CheckOutputs({{"--record", config->record_path}, {"--csv", flags.csv}, {"--html", flags.html}},
                   /*inputs=*/{{"--trace", flags.trace}});
  if (!writable.ok()) return PrintError(writable, kExitUsage, world);
  const auto report = MakeRuns(*config, world);
  if (!report.ok()) {
    if (IsAboutFile(report.status(), config->record_path)) return PrintError(report.status(), kExitFailed, world);
    return PrintCallError(report.status(), target, ExitCodeOf(report.status()), world);
  }
  const absl::Status published = Publish(*report, flags, world.out);
  const int exit_code = published.ok() ? kExitOk : PrintError(published, kExitFailed, world);
  const absl::Status verdict = Verdict(*report);
  return verdict.ok() ? exit_code : PrintCallError(verdict, target, ExitCodeOf(verdict), world);
}

}  // namespace

void AddBenchCommand(CLI::App& app, const World& world, int& exit_code) {
  auto flags = std::make_shared<BenchFlags>();  // shared with the callback, which CLI11 copies
  CLI::App* command = app.add_subcommand(
      "bench", "Send load in a closed or an open loop, measure latency and throughput, and check a sample of answers");
  AddBenchFlags(*command, *flags);
  command->callback([flags, &world, &exit_code] { exit_code = RunBench(*flags, world); });
}

}  // namespace triad::tools
