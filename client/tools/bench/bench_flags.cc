#include "client/tools/bench/bench_flags.h"

#include <memory>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/tools/flag_rules.h"
#include "client/tools/option_kinds.h"

namespace triad::tools {
namespace {

// A time of at least `least`.
CLI::Option* AddDuration(CLI::App& command, const std::string& name, absl::Duration least, Duration& target,
                         const std::string& description) {
  constexpr absl::Duration kMost = absl::Hours(24 * 365);
  return AddTime(
             command, name, least, kMost, [&target](absl::Duration time) { target = absl::ToChronoNanoseconds(time); },
             description)
      ->default_str(absl::FormatDuration(absl::FromChrono(target)));
}

// A file to write.
CLI::Option* AddOutput(CLI::App& command, const std::string& name, std::string& path, const std::string& description) {
  const auto check = [](const std::string& text) {
    return text == "-" ? "must be a file: - is not standard output here, and a file of that name is ./-" : "";
  };
  return command.add_option(name, path, description)->type_name("FILE")->check(CLI::Validator(check, ""));
}

void AddServerFlags(CLI::App& command, BenchFlags& flags) {
  const std::string group = "Servers";
  BenchConfig& c = flags.config;
  AddList(command, "--target", c.targets,
          "Servers: host:port, unix:path, or another gRPC target. In an open loop requests take turns, in a closed one "
          "those in flight are shared out")
      ->envname("TRIAD_TARGET")
      ->default_str(absl::StrJoin(c.targets, ","))
      ->group(group);
  command.add_option("--connections", c.connections, "Connections to each target")->capture_default_str()->group(group);
  command.add_flag("--stream", c.stream, "Send items of streams, one for each connection, instead of unary calls")
      ->group(group);
  AddTimeout(command, c.timeout, "Time for each request; there are no retries")->group(group);
}

void AddWorkloadFlags(CLI::App& command, BenchFlags& flags) {
  const std::string group = "Workload";
  Workload& w = flags.config.workload;
  RequestDraw& draw = flags.config.draw;
  const std::string lengths = ": N, uniform:LOW:HIGH or zipf:LOW:HIGH[:EXPONENT]";
  for (CLI::Option* option : {
           command.add_option("--layer", w.layer, "Send Forward requests for this hosted layer, instead of Attend"),
           command.add_option("--layer-version", w.layer_version, "Its version; default: the highest that is loaded"),
           command.add_option("--tokens", flags.tokens, "Queries, and keys, of each sequence" + lengths)
               ->capture_default_str(),
           command.add_option("--kv-len", flags.kv_len, "Keys, where they are not as many as the queries" + lengths),
           command.add_option("--batch", w.batch, "Sequences of a request")->capture_default_str(),
           command.add_option("--heads", w.heads, "Query heads")->capture_default_str(),
           command.add_option("--kv-heads", flags.kv_heads, "Key and value heads; default: as many as query heads"),
           command.add_option("--head-dim", w.qk_head_dim, "Width of queries and keys")->capture_default_str(),
           command.add_option("--v-head-dim", flags.v_head_dim, "Width of values; default: that of keys"),
           AddChoice<DType>(command, "--dtype", w.dtype,
                            {{"f32", DType::kF32}, {"bf16", DType::kBf16}, {"f16", DType::kF16}},
                            "Type of what is sent")
               ->default_str("f32"),
           command.add_flag("--causal", w.causal, "Hide keys after a query's position, the last query at the last key"),
           command.add_option("--keep", w.keep, "Send a keep mask that leaves this share visible; 1: none")
               ->capture_default_str(),
           command
               .add_option("--seed", draw.seed,
                           "Of lengths, contents and Poisson arrivals; with --trace of the arrivals only")
               ->capture_default_str(),
       }) {
    option->group(group);
  }
}

void AddLoadFlags(CLI::App& command, BenchFlags& flags) {
  const std::string group = "Load";
  BenchConfig& c = flags.config;
  command
      .add_option("--concurrency", flags.concurrency,
                  "Closed loop: requests kept in flight, N or LOW:HIGH:STEP (a run each)")
      ->group(group);
  command
      .add_option("--rate", flags.rate,
                  "Open loop: requests/s, R or LOW:HIGH:STEP (a run each), or one run of ramp:FROM:TO or "
                  "step:LOW:HIGH:STEP")
      ->group(group);
  AddChoice<Spacing>(command, "--arrivals", c.spacing,
                     {{"constant", Spacing::kConstant}, {"poisson", Spacing::kPoisson}}, "How an open loop's follow")
      ->default_str("constant")
      ->group(group);
  AddDuration(command, "--duration", absl::Milliseconds(1), c.duration, "How long each run sends")->group(group);
  AddDuration(command, "--warmup", absl::ZeroDuration(), c.warmup, "Sent before, and not measured")->group(group);
  command.add_option("--requests", c.max_requests, "Most requests of a run")->group(group);
  command.add_option("--max-in-flight", c.max_in_flight, "Open loop: a request that is due with so many is dropped")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--trace", flags.trace,
                  "Send the requests that --record wrote, when they were due then; with --concurrency or --rate, "
                  "which a trace without times needs, as those say")
      ->type_name("FILE")
      ->group(group);
  AddOutput(command, "--record", c.record_path, "Write the requests of the run, to be sent again by --trace")
      ->group(group);
}

void AddJudgementFlags(CLI::App& command, BenchFlags& flags) {
  const std::string group = "Judgement and output";
  BenchConfig& c = flags.config;
  command.add_option("--slo", flags.slo, "Objective, such as p99=20ms: reports goodput, the results/s within it")
      ->group(group);
  command.add_flag("--find-max", c.find_max, "Search for the highest rate that meets --slo, from --rate on")
      ->group(group);
  command.add_option("--find-max-precision", c.find_max_precision, "The search ends at this relative gap")
      ->capture_default_str()
      ->group(group);
  AddDuration(command, "--late-after", absl::ZeroDuration(), c.late_after,
              "A request that is sent so long past due is late; more than 1 % of them fail the run")
      ->group(group);
  command.add_option("--check", c.check, "Answers of each run that are checked")->capture_default_str()->group(group);
  command.add_flag("--json", flags.json, "Print for machines")->group(group);
  AddOutput(command, "--csv", flags.csv, "Write a row for each run")->group(group);
  AddOutput(command, "--html", flags.html, "Write a page with charts")->group(group);
}

// When requests are due is the trace's to say.
bool IsSentAsRecorded(const BenchFlags& flags) {
  return !flags.trace.empty() && flags.rate.empty() && flags.concurrency.empty() && !flags.config.find_max;
}

absl::Status ReadWorkload(const BenchFlags& flags, BenchConfig& config) {
  Workload& w = config.workload;
  if (!flags.trace.empty()) {
    auto trace = ReadTrace(flags.trace);
    if (!trace.ok()) return trace.status();
    if (IsSentAsRecorded(flags) && !trace->has_times) {
      return absl::InvalidArgumentError(absl::StrCat("--trace needs --concurrency or --rate: no line of ", flags.trace,
                                                     " says due_ns, when its request is due"));
    }
    w = trace->workload;
    config.trace = std::make_shared<const std::vector<TraceEntry>>(std::move(trace->entries));
    return absl::OkStatus();
  }
  w.kind = w.layer.empty() ? Workload::Kind::kAttend : Workload::Kind::kForward;
  w.kv_heads = flags.kv_heads.value_or(w.heads);
  w.v_head_dim = flags.v_head_dim.value_or(w.qk_head_dim);
  const auto tokens = ParseLengths("--tokens", flags.tokens);
  if (!tokens.ok()) return tokens.status();
  config.draw.tokens = *tokens;
  if (flags.kv_len.empty()) return absl::OkStatus();
  const auto kv_len = ParseLengths("--kv-len", flags.kv_len);
  if (!kv_len.ok()) return kv_len.status();
  config.draw.kv_len = *kv_len;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<LoadLevel>> ReadLevels(const BenchFlags& flags) {
  if (!flags.rate.empty()) return ParseRate(flags.rate, flags.config.duration);
  if (!flags.concurrency.empty()) return ParseConcurrency(flags.concurrency);
  constexpr double kFirstRate = 100;  // doubled until it is too much
  if (flags.config.find_max) return std::vector<LoadLevel>{ConstantRate(kFirstRate, flags.config.duration)};
  if (IsSentAsRecorded(flags)) return std::vector<LoadLevel>{{.label = "as recorded"}};
  return ParseConcurrency("1");
}

}  // namespace

void AddBenchFlags(CLI::App& command, BenchFlags& flags) {
  AddServerFlags(command, flags);
  AddWorkloadFlags(command, flags);
  AddLoadFlags(command, flags);
  AddJudgementFlags(command, flags);
  AddFlagRules(command, BenchFlagRules());
}

std::vector<FlagRule> BenchFlagRules() {
  return {
      // Of every run.
      {.flags = {"--target", "--connections", "--stream", "--timeout", "--rate", "--warmup", "--trace", "--record",
                 "--slo", "--find-max", "--check", "--json", "--csv", "--html"}},
      {.flags = {"--layer", "--layer-version", "--tokens", "--kv-len", "--batch", "--heads", "--kv-heads", "--head-dim",
                 "--v-head-dim", "--dtype", "--causal", "--keep"},
       .excludes = {"--trace"},
       .why = "a trace brings its own requests"},
      {.flags = {"--seed"},
       .when = "--trace",
       .needs = {"--arrivals poisson"},
       .why = "a trace brings its own requests, and only when they are due may be drawn"},
      {.flags = {"--heads", "--kv-heads", "--head-dim", "--v-head-dim", "--causal"},
       .excludes = {"--layer"},
       .why = "a layer has its own, and this is of Attend requests"},
      {.flags = {"--layer-version"}, .needs = {"--layer"}, .why = "Attend requests have no layer"},
      {.flags = {"--concurrency"},
       .excludes = {"--rate", "--find-max"},
       .why = "a run is a closed loop or an open one"},
      {.flags = {"--arrivals"},
       .needs = {"--rate", "--find-max"},
       .why = "a closed loop sends when an answer comes, and a trace when it says"},
      {.flags = {"--max-in-flight", "--late-after"},
       .needs = {"--rate", "--find-max", "--trace"},
       .excludes = {"--concurrency"},
       .why = "in a closed loop no request is ever due before it is sent"},
      {.flags = {"--duration"},
       .when = "--trace",
       .needs = {"--concurrency", "--rate", "--find-max"},
       .why = "a run that is sent at a trace's own times ends with the last of them"},
      {.flags = {"--requests"},
       .excludes = {"--find-max"},
       .why = "a run that ends before its --duration does not show that a rate can be kept up"},
      {.flags = {"--find-max-precision"}, .needs = {"--find-max"}, .why = "only a search ends at a precision"},
  };
}

absl::StatusOr<BenchConfig> ToConfig(const BenchFlags& flags) {
  BenchConfig config = flags.config;
  if (absl::Status status = ReadWorkload(flags, config); !status.ok()) return status;
  auto levels = ReadLevels(flags);
  if (!levels.ok()) return levels.status();
  config.levels = *std::move(levels);
  if (!flags.slo.empty()) {
    const auto slo = ParseServiceLevel(flags.slo);
    if (!slo.ok()) return slo.status();
    config.slo = *slo;
  }
  if (absl::Status status = CheckConfig(config); !status.ok()) return status;
  return config;
}

}  // namespace triad::tools
