// Connects, makes the runs that a configuration asks for, and checks their answers.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/tools/bench/bench_config.h"
#include "client/tools/bench/bench_report.h"
#include "client/tools/bench/load_run.h"
#include "client/tools/bench/request_builder.h"
#include "client/tools/bench/request_sender.h"
#include "core/base/clock.h"
#include "triad/client.h"

namespace triad::tools {

using Connect = std::function<absl::StatusOr<std::shared_ptr<client::Connection>>(const client::ClientOptions&)>;

// Told what goes on: a name, or something to call (from any thread, until the next notice) for a line about now.
using Notice = std::function<void(std::function<std::string()>)>;

class Bench {
 public:
  // `config` has passed CheckConfig. Asks every target what it is and, for a Forward, how wide its layer is. Retries
  // are off: a refusal is to be counted. Errors are those calls'; OUT_OF_RANGE: more requests are to be in flight on a
  // stream than the server reads; INVALID_ARGUMENT: lengths of a context for a layer that takes none, or a tensor that
  // no message holds. Those of one target begin with its name.
  static absl::StatusOr<std::unique_ptr<Bench>> Create(BenchConfig config, const Connect& connect, Clock& clock);

  // All runs, one after another. Blocks. A `stop` ends the run that is going on, cancels what it has in flight, and
  // leaves out the rest; so does a run that is refused for good, without a cancel. Once only. Errors: a stream could
  // not be opened, the trace not be written; CANCELLED: stopped before the first run.
  absl::StatusOr<BenchReport> Run(const Notice& notice, std::stop_token stop = {});

 private:
  Bench(BenchConfig config, Clock& clock) : config_(std::move(config)), clock_(clock) {}

  absl::Status ConnectAll(const Connect& connect);
  absl::Status CheckStreams() const;
  absl::Status AskLayer();
  Json Setup() const;

  absl::StatusOr<std::vector<std::unique_ptr<RequestSender>>> OpenSenders(size_t target) const;
  RequestStream NewRequests() const;
  LoadPlan PlanOf(const LoadLevel& level) const;
  LoadPlan WarmupPlan(const LoadLevel& level) const;

  // Makes one run. `recorder` and `sample` take what comes of it.
  absl::StatusOr<RunEnd> RunPlan(LoadPlan plan, RunRecorder& recorder, AnswerSample& sample, TraceWriter* trace) const;
  absl::StatusOr<LevelReport> RunLevel(const LoadLevel& level, const Notice& notice) const;
  absl::Status WarmUp(const Notice& notice) const;
  absl::Status RunSearch(const Notice& notice, BenchReport& report) const;

  BenchConfig config_;  // workload's widths are filled in by Create
  Clock& clock_;
  std::stop_token stop_;                     // Run's
  std::vector<client::Client> clients_;      // by target
  std::vector<client::ServerInfo> servers_;  // by target
  std::optional<RequestBuilder> builder_;    // set by Create
};

}  // namespace triad::tools
