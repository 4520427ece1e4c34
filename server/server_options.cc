#include "server/server_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/layer_name.h"
#include "server/refuse.h"
#include "server/server_options_flags.h"

namespace triad {
namespace {

constexpr absl::string_view kEnvironmentPrefix = "TRIAD_";
constexpr absl::string_view kToolVariable = "TRIAD_TARGET";  // of the command-line tool; may stand in the same shell
constexpr int64_t kProtobufMaxBytes = std::numeric_limits<int32_t>::max();  // a serialized message's sizes are 31 bits
constexpr int kMaxThreads = 4096;
constexpr int64_t kMaxTokens = 1 << 24;  // positions stay exact in f32, as ALiBi's distances need
constexpr int64_t kReplyFramingBytes =
    256;  // of a reply, around its tensors' data: tags, shapes, timings, an item's id

// Whether Kubernetes, or Docker for a linked container, put the variable TRIAD_<name>=<value> here because of a service
// called "triad" or "triad-something". Their plain PORT holds a URL; a number there is somebody's wish.
bool IsOfAService(absl::string_view name, absl::string_view value) {
  static const std::regex kForm(
      "(?:|[A-Z0-9_]+?_)(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|"
      "PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:ADDR|PORT|PROTO))?|(PORT))");
  std::cmatch match;
  return std::regex_match(name.begin(), name.end(), match, kForm) &&
         (!match[1].matched || absl::StrContains(value, "://"));
}

absl::Status ApplyEnvironment(const char* const environment[]) {
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    absl::string_view text = *entry;
    if (text.substr(0, text.find('=')) == kToolVariable) continue;
    if (!absl::ConsumePrefix(&text, kEnvironmentPrefix)) continue;
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (IsOfAService(parts.first, parts.second)) continue;
    if (absl::Status status = SetServerFlag(absl::AsciiStrToLower(parts.first), parts.second); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("environment variable ", kEnvironmentPrefix, parts.first, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status Refuse(absl::string_view flag, absl::string_view rule, const absl::AlphaNum& was) {
  return RefuseField(absl::StrCat("--", flag), rule, was);
}

// Whether `host` is one host's name or address, and nothing that whoever listens there would read otherwise: civetweb
// takes lists separated by commas, gRPC takes what has colons for an address without port.
bool IsHost(absl::string_view host) {
  const bool is_bracketed = absl::ConsumePrefix(&host, "[");
  if (is_bracketed && !absl::ConsumeSuffix(&host, "]")) return false;
  return !host.empty() && std::all_of(host.begin(), host.end(), [&](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c)) && c != ',' && c != '[' && c != ']' &&
           (c != ':' || is_bracketed);
  });
}

// Host and port of "host:port" or "[v6]:port".
absl::Status CheckHostPort(absl::string_view flag, absl::string_view address) {
  const size_t colon = address.rfind(':');
  const absl::string_view host = address.substr(0, colon);
  const absl::string_view digits = colon == absl::string_view::npos ? "" : address.substr(colon + 1);
  int port = -1;
  // Digits alone: SimpleAtoi would take a sign and spaces.
  const bool is_port = std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) &&
                       absl::SimpleAtoi(digits, &port) && port <= 65535;
  if (is_port && IsHost(host)) return absl::OkStatus();
  return Refuse(flag, "be one host:port, an IPv6 host in brackets, with a port of 0 to 65535", Quoted(address));
}

absl::Status CheckAddresses(const ServerOptions& options) {
  if (options.listen.empty()) return Refuse("listen", "name at least one address", "empty");
  for (const std::string& address : options.listen) {
    if (absl::StartsWith(address, "unix:")) {
      if (address.size() > 5) continue;
      return Refuse("listen", "name a path after unix:", absl::StrCat("\"", address, "\""));
    }
    if (absl::Status status = CheckHostPort("listen", address); !status.ok()) return status;
  }
  if (options.http_listen.empty()) return absl::OkStatus();
  return CheckHostPort("http_listen", options.http_listen);
}

// Whoever listens second would find it taken. Port 0 is another one each time.
absl::Status CheckAddressesDiffer(const ServerOptions& options) {
  std::set<absl::string_view> taken;
  for (const std::string& address : options.listen) {
    if (absl::EndsWith(address, ":0") || taken.insert(address).second) continue;
    return Refuse("listen", "name each address once", Quoted(address));
  }
  if (taken.count(options.http_listen) == 0) return absl::OkStatus();
  return Refuse("http_listen", "be no address of --listen", Quoted(options.http_listen));
}

absl::Status CheckIntegers(const ServerOptions& o) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  struct Range {
    absl::string_view flag;
    int64_t value, low, high;
  };
  for (const Range& r :
       {Range{"threads", o.threads, 0, kMaxThreads},
        {"max_message_bytes", o.max_message_bytes, 1024, kProtobufMaxBytes},
        {"max_tokens_per_request", o.max_tokens_per_request, 1, kMaxTokens},
        {"max_head_dim", o.max_head_dim, 1, kAny},
        {"max_batch", o.max_batch, 1, kAny},
        {"max_head_sequences", o.max_head_sequences, 1, kAny},
        {"max_weights_bytes", o.max_weights_bytes, 0, kAny},
        {"max_reference_work", o.max_reference_work, 0, kAny},
        {"max_in_flight_requests", o.max_in_flight_requests, 1, kAny},
        {"max_peer_in_flight_requests", o.max_peer_in_flight_requests, ServerOptions::kHalfOfAll, kAny},
        {"max_peer_in_flight_bytes", o.max_peer_in_flight_bytes, ServerOptions::kHalfOfAll, kAny},
        {"max_streams", o.max_streams, 0, kAny},
        {"max_stream_items", o.max_stream_items, 1, kAny},
        {"max_batch_tokens", o.max_batch_tokens, 1, kAny},
        {"max_shared_tokens", o.max_shared_tokens, 0, kAny},
        {"compute_niceness", o.compute_niceness, 0, 19},
        {"max_inline_bytes", o.max_inline_bytes, 0, kAny},
        {"max_layer_loads", o.max_layer_loads, 1, kAny},
        {"max_layer_weights_bytes", o.max_layer_weights_bytes, 0, kAny}}) {
    if (r.value >= r.low && r.value <= r.high) continue;
    return Refuse(
        r.flag,
        r.high == kAny ? absl::StrCat("be at least ", r.low) : absl::StrCat("lie between ", r.low, " and ", r.high),
        r.value);
  }
  return absl::OkStatus();
}

absl::Status CheckFlop(const ServerOptions& o) {
  struct Range {
    absl::string_view flag;
    double value, low;
  };
  for (const Range& r : {Range{"max_batch_flop", o.max_batch_flop, 1}, {"max_inline_flop", o.max_inline_flop, 0}}) {
    if (std::isfinite(r.value) && r.value >= r.low) continue;
    return Refuse(r.flag, absl::StrCat("be finite and at least ", r.low), r.value);
  }
  return absl::OkStatus();
}

absl::Status CheckDurations(const ServerOptions& o) {
  for (const auto& [flag, duration] : {std::pair<absl::string_view, absl::Duration>{"max_queue_time", o.max_queue_time},
                                       {"max_connection_age", o.max_connection_age},
                                       {"max_connection_age_grace", o.max_connection_age_grace},
                                       {"drain_timeout", o.drain_timeout}}) {
    // An hour-scale ceiling keeps every sum of a time and a duration far from overflow.
    if (duration > absl::ZeroDuration() && duration <= absl::Hours(24 * 365)) continue;
    return Refuse(flag, "lie between 1ns and 8760h", absl::FormatDuration(duration));
  }
  return absl::OkStatus();
}

// Bounds that would contradict each other.
absl::Status CheckFit(const ServerOptions& o) {
  if (o.max_in_flight_bytes < o.max_message_bytes) {
    return Refuse("max_in_flight_bytes",
                  absl::StrCat("be at least --max_message_bytes = ", o.max_message_bytes,
                               ", or the largest message could never be served"),
                  o.max_in_flight_bytes);
  }
  if (o.grpc_memory_bytes < o.max_message_bytes) {
    return Refuse("grpc_memory_bytes",
                  absl::StrCat("be at least --max_message_bytes = ", o.max_message_bytes,
                               ", or the largest message could never be received"),
                  o.grpc_memory_bytes);
  }
  return absl::OkStatus();
}

constexpr std::array kInstructionSets = {InstructionSet::kGeneric, InstructionSet::kAvx2, InstructionSet::kAvx512,
                                         InstructionSet::kAvx512Bf16, InstructionSet::kAmxBf16};

constexpr std::array kKernelChoices = {KernelChoice::kAuto, KernelChoice::kFused, KernelChoice::kOneDnn};

absl::Status CheckWords(const ServerOptions& options) {
  if (options.log_format != Name(LogFormat::kText) && options.log_format != Name(LogFormat::kJson)) {
    return Refuse("log_format", "be text or json", absl::StrCat("\"", options.log_format, "\""));
  }
  const auto has_name = [&](InstructionSet isa) { return options.instruction_set == Name(isa); };
  if (options.instruction_set != "auto" && std::none_of(kInstructionSets.begin(), kInstructionSets.end(), has_name)) {
    return Refuse("instruction_set", "be auto, generic, avx2, avx512, avx512_bf16 or amx_bf16",
                  absl::StrCat("\"", options.instruction_set, "\""));
  }
  const auto is_named = [&](KernelChoice choice) { return options.kernel == Name(choice); };
  if (std::none_of(kKernelChoices.begin(), kKernelChoices.end(), is_named)) {
    return Refuse("kernel", "be auto, fused or onednn", absl::StrCat("\"", options.kernel, "\""));
  }
  return absl::OkStatus();
}

absl::Status CheckLayers(const ServerOptions& options) {
  if (!options.layers.empty() && options.layer_dir.empty()) {
    return Refuse("layer_dir", "be given with --layers", "empty");
  }
  for (const std::string& layer : options.layers) {
    if (layer.empty()) {
      return Refuse("layers", "have a name on either side of each comma", Quoted(absl::StrJoin(options.layers, ",")));
    }
    if (absl::StatusOr<LayerChoice> choice = ParseLayerChoice("--layers", layer); !choice.ok()) return choice.status();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ServerOptions> LoadServerOptions(int argc, char* argv[], const char* const environment[]) {
  if (absl::Status status = ApplyEnvironment(environment); !status.ok()) return status;
  absl::StatusOr<ServerOptions> options = ParseServerFlags(std::vector<std::string>(argv, argv + argc));
  if (!options.ok()) return options;
  return ResolveServerOptions(*std::move(options));
}

absl::StatusOr<ServerOptions> ResolveServerOptions(ServerOptions options) {
  for (const auto check : {CheckAddresses, CheckAddressesDiffer, CheckIntegers, CheckFlop, CheckDurations, CheckFit,
                           CheckWords, CheckLayers}) {
    if (absl::Status status = check(options); !status.ok()) return status;
  }
  const auto resolve = [](int64_t& share, int64_t all) {
    if (share == ServerOptions::kHalfOfAll) share = std::max<int64_t>(1, all / 2);  // 0 would be no limit
  };
  resolve(options.max_peer_in_flight_requests, options.max_in_flight_requests);
  resolve(options.max_peer_in_flight_bytes, options.max_in_flight_bytes);
  return options;
}

std::optional<std::string> AnswerForHelpFlags(int argc, char* argv[]) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view name = argv[i];
    if (!absl::ConsumePrefix(&name, "-")) continue;
    absl::ConsumePrefix(&name, "-");
    name = name.substr(0, name.find('='));
    if (name == "version") return absl::StrCat("triad-server ", ServerVersion(), "\n");
    if (name == "help" || name == "h") return ServerFlagsHelp();
  }
  return std::nullopt;
}

AttentionLimits LimitsOf(const ServerOptions& options) {
  return {.max_tokens_per_request = options.max_tokens_per_request,
          .max_head_dim = options.max_head_dim,
          .max_weights_bytes = options.max_weights_bytes,
          .max_batch = options.max_batch,
          .max_message_bytes = options.max_message_bytes - kReplyFramingBytes};
}

int64_t MostHeldBytesOf(const ServerOptions& options) {
  return (options.grpc_memory_bytes - options.max_message_bytes) / 2;
}

int MaxCallsPerConnectionOf(const ServerOptions& options) {
  constexpr int64_t kLeast = 8192;
  constexpr int64_t kMost = std::numeric_limits<int>::max();  // gRPC's argument is an int
  return static_cast<int>(std::max(kLeast, 2 * std::min(options.max_in_flight_requests, kMost / 2)));
}

SchedulerOptions SchedulerOptionsOf(const ServerOptions& options, int threads) {
  return {.threads = threads,
          .niceness = options.compute_niceness,
          .max_in_flight_bytes = options.max_in_flight_bytes,
          .max_in_flight_requests = options.max_in_flight_requests,
          .max_queue_time = absl::ToChronoNanoseconds(options.max_queue_time),
          .max_batch_tokens = options.max_batch_tokens,
          .max_batch_flop = options.max_batch_flop,
          .max_shared_tokens = options.max_shared_tokens,
          .max_inline_flop = options.max_inline_flop,
          .max_inline_bytes = options.max_inline_bytes};
}

LogFormat LogFormatOf(const ServerOptions& options) {
  return options.log_format == Name(LogFormat::kJson) ? LogFormat::kJson : LogFormat::kText;
}

KernelChoice KernelChoiceOf(const ServerOptions& options) {
  return *std::find_if(kKernelChoices.begin(), kKernelChoices.end(),
                       [&](KernelChoice choice) { return options.kernel == Name(choice); });
}

absl::StatusOr<InstructionSet> ChooseInstructionSet(const ServerOptions& options, InstructionSet detected) {
  for (InstructionSet isa : kInstructionSets) {
    if (options.instruction_set != Name(isa)) continue;
    if (isa <= detected) return isa;
    return Refuse("instruction_set", absl::StrCat("be at most what this machine has (", Name(detected), ")"),
                  options.instruction_set);
  }
  return detected;
}

absl::string_view ServerVersion() { return TRIAD_VERSION; }

}  // namespace triad
