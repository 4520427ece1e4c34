#include "client/tools/bench/bench.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace triad::tools {
namespace {

constexpr uint64_t kSampleSeed = 2;
constexpr int64_t kWarmupConcurrency = 4;  // of an open loop

// `status` of a call to `target`, one of several.
absl::Status NameTarget(const absl::Status& status, const std::string& target) {
  return absl::Status(status.code(), absl::StrCat(target, ": ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Bench>> Bench::Create(BenchConfig config, const Connect& connect, Clock& clock) {
  std::unique_ptr<Bench> bench(new Bench(std::move(config), clock));
  if (absl::Status status = bench->ConnectAll(connect); !status.ok()) return status;
  if (absl::Status status = bench->CheckStreams(); !status.ok()) return status;
  if (absl::Status status = bench->AskLayer(); !status.ok()) return status;
  const BenchConfig& c = bench->config_;
  auto builder = RequestBuilder::Create(c.workload, LongestOf(c));
  if (!builder.ok()) return builder.status();
  bench->builder_.emplace(*std::move(builder));
  return bench;
}

absl::Status Bench::ConnectAll(const Connect& connect) {
  for (const std::string& target : config_.targets) {
    client::ClientOptions options;
    options.target = target;
    options.channels = config_.connections;
    options.retry.max_attempts = 1;
    auto connection = connect(options);
    if (!connection.ok()) return NameTarget(connection.status(), target);
    clients_.emplace_back(*std::move(connection));
    auto info = clients_.back().GetServerInfo();
    if (!info.ok()) return NameTarget(info.status(), target);
    servers_.push_back(*std::move(info));
  }
  return absl::OkStatus();
}

// A closed loop sends on the thread that reads a stream: where the server stops reading until an answer is taken, it
// would wait for itself.
absl::Status Bench::CheckStreams() const {
  if (!config_.stream) return absl::OkStatus();
  const auto streams = static_cast<int64_t>(config_.targets.size()) * config_.connections;
  for (const LoadLevel& level : config_.levels) {
    for (const client::ServerInfo& server : servers_) {
      const int64_t most = server.limits.max_stream_items;
      const int64_t of_stream = (level.concurrency + streams - 1) / streams;
      if (most == 0 || of_stream < most) continue;
      return absl::OutOfRangeError(absl::StrCat("--concurrency must be below ", most,
                                                " on each stream, the server's "
                                                "--max_stream_items; was ",
                                                level.concurrency, " on ", streams, ": use more --connections"));
    }
  }
  return absl::OkStatus();
}

absl::Status Bench::AskLayer() {
  Workload& w = config_.workload;
  if (w.kind != Workload::Kind::kForward) return absl::OkStatus();
  const auto layer = clients_[0].GetLayer({.name = w.layer, .version = w.layer_version});
  if (!layer.ok()) return NameTarget(layer.status(), config_.targets[0]);
  w.model_dim = layer->model_dim;
  w.context_dim = layer->requires_context ? layer->context_dim : 0;
  if (config_.draw.kv_len && w.context_dim == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--kv-len is for a layer that takes a context; ", w.layer, " takes none: leave it out"));
  }
  return absl::OkStatus();
}

Json Bench::Setup() const {
  const BenchConfig& c = config_;
  Json workload = WorkloadJson(c.workload);
  if (c.trace) {
    workload["trace_requests"] = c.trace->size();
  } else {
    workload["tokens"] = ToText(c.draw.tokens);
    if (c.draw.kv_len) workload["kv_len"] = ToText(*c.draw.kv_len);
  }
  if (!c.trace || c.spacing == Spacing::kPoisson) workload["seed"] = c.draw.seed;
  Json setup = {{"began", absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", c.began, absl::UTCTimeZone())},
                {"workload", workload},
                {"transport", c.stream ? "stream" : "unary"},
                {"connections", c.connections}};
  const bool is_open = c.levels[0].concurrency == 0;
  const bool is_as_recorded = is_open && c.levels[0].stages.empty();
  if (is_open) {
    setup["arrivals"] = is_as_recorded ? "as recorded" : c.spacing == Spacing::kPoisson ? "poisson" : "constant";
  }
  if (!is_as_recorded) setup["duration"] = absl::FormatDuration(absl::FromChrono(c.duration));
  if (c.max_requests < BenchConfig().max_requests) setup["requests"] = c.max_requests;
  setup["warmup"] = absl::FormatDuration(absl::FromChrono(c.warmup));
  setup["timeout"] = absl::FormatDuration(c.timeout);
  if (c.slo) setup["slo"] = ToText(*c.slo);
  for (size_t i = 0; i < c.targets.size(); ++i) {
    const client::ServerInfo& s = servers_[i];
    setup[c.targets.size() == 1 ? "target" : absl::StrCat("target_", i + 1)] = absl::StrCat(
        c.targets[i], " (", s.version, ", ", s.kernel, " on ", s.instruction_set, ", ", s.threads, " threads)");
  }
  return setup;
}

absl::StatusOr<std::vector<std::unique_ptr<RequestSender>>> Bench::OpenSenders(size_t target) const {
  const SenderOptions options{.timeout = config_.timeout, .cancel = stop_};
  std::vector<std::unique_ptr<RequestSender>> senders;
  if (!config_.stream) {
    senders.push_back(MakeUnarySender(clients_[target], *builder_, options));
    return senders;
  }
  for (int connection = 0; connection < config_.connections; ++connection) {
    auto sender = MakeStreamSender(clients_[target], *builder_, options);
    if (!sender.ok()) return NameTarget(sender.status(), config_.targets[target]);
    senders.push_back(*std::move(sender));
  }
  return senders;
}

RequestStream Bench::NewRequests() const {
  return config_.trace ? ReplayRequests(config_.trace) : DrawRequests(config_.draw);
}

LoadPlan Bench::PlanOf(const LoadLevel& level) const {
  LoadPlan plan{.requests = NewRequests(),
                .max_requests = config_.max_requests,
                .concurrency = level.concurrency,
                .max_in_flight = config_.max_in_flight,
                .stop = stop_};
  if (level.concurrency > 0) {
    plan.duration = config_.duration;
  } else if (level.stages.empty()) {
    plan.due_times = ReplayDueTimes(config_.trace);
  } else {
    plan.due_times = PlanDueTimes({.stages = level.stages, .spacing = config_.spacing, .seed = config_.draw.seed});
    plan.duration = config_.duration;
  }
  return plan;
}

LoadPlan Bench::WarmupPlan(const LoadLevel& level) const {
  return {.requests = NewRequests(),
          .concurrency = level.concurrency > 0 ? level.concurrency : kWarmupConcurrency,
          .duration = config_.warmup,
          .stop = stop_};
}

absl::StatusOr<RunEnd> Bench::RunPlan(LoadPlan plan, RunRecorder& recorder, AnswerSample& sample,
                                      TraceWriter* trace) const {
  std::vector<std::unique_ptr<RequestSender>> senders;
  LoadTools tools{.routes = {}, .recorder = recorder, .sample = sample, .trace = trace, .clock = clock_};
  for (size_t target = 0; target < clients_.size(); ++target) {
    auto opened = OpenSenders(target);
    if (!opened.ok()) return opened.status();
    for (auto& sender : *opened) {
      tools.routes.push_back({.sender = sender.get(), .target = target});
      senders.push_back(std::move(sender));
    }
  }
  return RunLoad(std::move(plan), tools);
}

absl::Status Bench::WarmUp(const Notice& notice) const {
  if (config_.warmup <= Duration::zero()) return absl::OkStatus();
  notice([] { return std::string("warming up"); });
  RunRecorder recorder({}, clock_.Now());
  AnswerSample sample(/*size=*/0, kSampleSeed);
  const auto end = RunPlan(WarmupPlan(config_.levels[0]), recorder, sample, /*trace=*/nullptr);
  if (end.ok() && *end == RunEnd::kInterrupted) {
    return absl::CancelledError("interrupted while warming up; nothing was measured");
  }
  return end.status();
}

absl::StatusOr<LevelReport> Bench::RunLevel(const LoadLevel& level, const Notice& notice) const {
  std::unique_ptr<TraceWriter> trace;
  if (!config_.record_path.empty()) {
    auto writer = TraceWriter::Create(config_.record_path, config_.workload);
    if (!writer.ok()) return writer.status();
    trace = *std::move(writer);
  }
  const RecorderOptions options{.slo = config_.slo, .late_after = config_.late_after};
  // Shared with the notice, which may be read once more after this returns.
  const auto recorder = std::make_shared<RunRecorder>(options, clock_.Now());
  notice([recorder, label = level.label, &clock = clock_] {
    return absl::StrCat(label, "  ", recorder->Summary(clock.Now()));
  });
  AnswerSample sample(config_.check, kSampleSeed);
  const absl::StatusOr<RunEnd> end = RunPlan(PlanOf(level), *recorder, sample, trace.get());
  if (!end.ok()) return end.status();
  if (trace != nullptr) {
    if (absl::Status status = trace->Close(); !status.ok()) return status;
  }
  notice([label = level.label] { return absl::StrCat(label, "  checking answers"); });
  const bool is_open = level.concurrency == 0;
  LevelReport report{.label = level.label, .is_open = is_open, .result = recorder->Result(), .end = *end};
  report.check = CheckAnswers(sample.Take(), *builder_, clients_, stop_);
  if (is_open) report.generator = CheckGenerator(report.result, options);
  return report;
}

absl::Status Bench::RunSearch(const Notice& notice, BenchReport& report) const {
  RateSearch search(config_.levels[0].stages[0].from, config_.find_max_precision);
  std::optional<double> lowest_missed;
  bool missed_by_generator = false;
  int64_t requests_of_best = 0;
  while (const std::optional<double> rate = search.next()) {
    auto level = RunLevel(ConstantRate(*rate, config_.duration), notice);
    if (!level.ok()) return level.status();
    if (level->end != RunEnd::kComplete || stop_.stop_requested()) {
      report.levels.push_back(*std::move(level));
      break;
    }
    const RunResult& result = level->result;
    const bool kept_up = level->generator.ok();
    const bool met = kept_up && config_.slo->IsMet(result.within_slo, result.due());
    if (!met && (!lowest_missed || *rate < *lowest_missed)) {
      lowest_missed = *rate;
      missed_by_generator = result.dropped == 0 && !kept_up;
    }
    search.Report(met);
    if (met) requests_of_best = result.due();  // a higher rate than those that met before
    report.levels.push_back(*std::move(level));
  }
  report.search = {
      .highest_rate = search.best(), .requests = requests_of_best, .generator_was_the_limit = missed_by_generator};
  return absl::OkStatus();
}

absl::StatusOr<BenchReport> Bench::Run(const Notice& notice, std::stop_token stop) {
  stop_ = std::move(stop);
  BenchReport report{.setup = Setup(), .slo = config_.slo};
  if (absl::Status status = WarmUp(notice); !status.ok()) return status;
  if (config_.find_max) {
    if (absl::Status status = RunSearch(notice, report); !status.ok()) return status;
    return report;
  }
  for (const LoadLevel& level : config_.levels) {
    auto done = RunLevel(level, notice);
    if (!done.ok()) return done.status();
    report.levels.push_back(*std::move(done));
    if (report.levels.back().end != RunEnd::kComplete || stop_.stop_requested()) break;
  }
  return report;
}

}  // namespace triad::tools
