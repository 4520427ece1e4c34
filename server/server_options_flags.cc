#include "server/server_options_flags.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/refuse.h"

using Strings = std::vector<std::string>;

namespace {
const triad::ServerOptions& Defaults() {
  static const auto* const defaults = new triad::ServerOptions;
  return *defaults;
}
}  // namespace

ABSL_FLAG(Strings, listen, Defaults().listen,
          "Address for gRPC: host:port or unix:path. May be repeated, or hold several separated by commas. "
          "Port 0 picks a free port; the log says which.");
ABSL_FLAG(std::string, http_listen, Defaults().http_listen,
          "Address for /metrics, /healthz, /readyz and /configz: host:port. Empty: none.");
ABSL_FLAG(int, threads, Defaults().threads,
          "Compute threads. 0: as many as the CPU quota and the affinity mask allow.");
ABSL_FLAG(std::string, instruction_set, Defaults().instruction_set,
          "The most the kernels may use: auto, generic, avx2, avx512, avx512_bf16 or amx_bf16.");
ABSL_FLAG(std::string, kernel, Defaults().kernel,
          "Whose products compute attention: auto (the faster one for each type), fused (our own) or onednn.");
ABSL_FLAG(int64_t, max_message_bytes, Defaults().max_message_bytes, "Largest message either way, in bytes.");
ABSL_FLAG(int64_t, max_tokens_per_request, Defaults().max_tokens_per_request,
          "Most tokens of one request: queries plus keys, over all its sequences.");
ABSL_FLAG(int64_t, max_head_dim, Defaults().max_head_dim, "Largest qk_head_dim or v_head_dim.");
ABSL_FLAG(int64_t, max_batch, Defaults().max_batch, "Most sequences of one request.");
ABSL_FLAG(int64_t, max_head_sequences, Defaults().max_head_sequences,
          "Most pairs of a sequence and a kv head in one request: each is planned as work of its own.");
ABSL_FLAG(int64_t, max_weights_bytes, Defaults().max_weights_bytes,
          "Most bytes of attention weights in one reply. 0: none are returned.");
ABSL_FLAG(int64_t, max_reference_work, Defaults().max_reference_work,
          "Most multiply-adds of a request with kernel = KERNEL_REFERENCE. 0: none are served.");
ABSL_FLAG(int64_t, max_in_flight_bytes, Defaults().max_in_flight_bytes,
          "Most bytes of requests and replies held at once; more is refused with RESOURCE_EXHAUSTED.");
ABSL_FLAG(int64_t, max_in_flight_requests, Defaults().max_in_flight_requests,
          "Most requests waiting and running at once; more are refused with RESOURCE_EXHAUSTED.");
ABSL_FLAG(int64_t, max_peer_in_flight_requests, Defaults().max_peer_in_flight_requests,
          "Most requests of one client address (without its port; all clients of unix sockets are one) held at once; "
          "more are refused with RESOURCE_EXHAUSTED. -1: half of --max_in_flight_requests. 0: no limit.");
ABSL_FLAG(int64_t, max_peer_in_flight_bytes, Defaults().max_peer_in_flight_bytes,
          "Most bytes of the requests and replies of one client address held at once, unless it is a single request; "
          "more are refused with RESOURCE_EXHAUSTED. -1: half of --max_in_flight_bytes. 0: no limit.");
ABSL_FLAG(absl::Duration, max_queue_time, Defaults().max_queue_time,
          "Longest a request may wait for its turn before it is refused with RESOURCE_EXHAUSTED.");
ABSL_FLAG(int64_t, max_streams, Defaults().max_streams, "Most streams open at once.");
ABSL_FLAG(int64_t, max_stream_items, Defaults().max_stream_items,
          "Most unanswered items of one stream; at that bound the server stops reading it.");
ABSL_FLAG(int64_t, grpc_memory_bytes, Defaults().grpc_memory_bytes,
          "Most memory gRPC may use for messages that are still arriving, and for those read where they lie.");
ABSL_FLAG(int64_t, max_batch_tokens, Defaults().max_batch_tokens,
          "Most query tokens computed at once; a larger request is computed alone.");
ABSL_FLAG(double, max_batch_flop, Defaults().max_batch_flop,
          "Most estimated work computed at once, in floating-point operations; a larger request is computed alone.");
ABSL_FLAG(
    int64_t, max_shared_tokens, Defaults().max_shared_tokens,
    "Most tokens of Forward requests that share a layer's projections; a larger request shares with none. 0: none "
    "share.");
ABSL_FLAG(
    int, compute_niceness, Defaults().compute_niceness,
    "Added to the nice value of compute threads, 0 to 19, so that requests are received and answered while all of "
    "them compute; the system stops at 19. 0: they compete with those who receive.");
ABSL_FLAG(double, max_inline_flop, Defaults().max_inline_flop,
          "Largest request that is computed on the thread that received it, when the server is idle or no compute "
          "thread is free, in floating-point operations.");
ABSL_FLAG(int64_t, max_inline_bytes, Defaults().max_inline_bytes,
          "Most bytes of such a request, its reply and its bookkeeping together.");
ABSL_FLAG(std::string, layer_dir, Defaults().layer_dir,
          "Folder of hosted layers: <layer_dir>/<name>/<version>/ with layer.textproto and weights.safetensors. Empty: "
          "none.");
ABSL_FLAG(Strings, layers, Defaults().layers,
          "Layers to load from --layer_dir at the start: name or name@version. May be repeated, or hold several "
          "separated by commas. Empty: the highest "
          "version of every layer there.");
ABSL_FLAG(bool, demo_layer, Defaults().demo_layer,
          "Hosts version 1 of the layer \"demo\", built in: 512 wide, 8 heads of 64, random weights.");
ABSL_FLAG(bool, allow_layer_admin, Defaults().allow_layer_admin,
          "Whether clients may load and unload layers (LoadLayer, UnloadLayer).");
ABSL_FLAG(int64_t, max_layer_loads, Defaults().max_layer_loads,
          "Most LoadLayer calls waiting and running at once; more are refused with RESOURCE_EXHAUSTED.");
ABSL_FLAG(int64_t, max_layer_weights_bytes, Defaults().max_layer_weights_bytes,
          "Most bytes of packed weights of layers in memory; a layer beyond is not loaded (FAILED_PRECONDITION); the "
          "demo layer counts, but is there whatever it is. 0: no limit.");
ABSL_FLAG(absl::Duration, max_connection_age, Defaults().max_connection_age,
          "Age at which a connection is closed, so that clients spread over new replicas. Calls in progress go on.");
ABSL_FLAG(absl::Duration, max_connection_age_grace, Defaults().max_connection_age_grace,
          "How long calls, and so streams, may go on after that before they are cut off.");
ABSL_FLAG(absl::Duration, drain_timeout, Defaults().drain_timeout,
          "How long SIGTERM waits for accepted requests to be answered.");
ABSL_FLAG(std::string, log_format, Defaults().log_format, "text or json.");

namespace triad {
namespace {

// Calls `visit(field, flag)` for every option, in the order of the struct.
template <class Options, class Visit>
void VisitOptions(Options& options, Visit visit) {
  visit(options.listen, FLAGS_listen);
  visit(options.http_listen, FLAGS_http_listen);
  visit(options.threads, FLAGS_threads);
  visit(options.instruction_set, FLAGS_instruction_set);
  visit(options.kernel, FLAGS_kernel);
  visit(options.max_message_bytes, FLAGS_max_message_bytes);
  visit(options.max_tokens_per_request, FLAGS_max_tokens_per_request);
  visit(options.max_head_dim, FLAGS_max_head_dim);
  visit(options.max_batch, FLAGS_max_batch);
  visit(options.max_head_sequences, FLAGS_max_head_sequences);
  visit(options.max_weights_bytes, FLAGS_max_weights_bytes);
  visit(options.max_reference_work, FLAGS_max_reference_work);
  visit(options.max_in_flight_bytes, FLAGS_max_in_flight_bytes);
  visit(options.max_in_flight_requests, FLAGS_max_in_flight_requests);
  visit(options.max_peer_in_flight_requests, FLAGS_max_peer_in_flight_requests);
  visit(options.max_peer_in_flight_bytes, FLAGS_max_peer_in_flight_bytes);
  visit(options.max_queue_time, FLAGS_max_queue_time);
  visit(options.max_streams, FLAGS_max_streams);
  visit(options.max_stream_items, FLAGS_max_stream_items);
  visit(options.grpc_memory_bytes, FLAGS_grpc_memory_bytes);
  visit(options.max_batch_tokens, FLAGS_max_batch_tokens);
  visit(options.max_batch_flop, FLAGS_max_batch_flop);
  visit(options.max_shared_tokens, FLAGS_max_shared_tokens);
  visit(options.compute_niceness, FLAGS_compute_niceness);
  visit(options.max_inline_flop, FLAGS_max_inline_flop);
  visit(options.max_inline_bytes, FLAGS_max_inline_bytes);
  visit(options.layer_dir, FLAGS_layer_dir);
  visit(options.layers, FLAGS_layers);
  visit(options.demo_layer, FLAGS_demo_layer);
  visit(options.allow_layer_admin, FLAGS_allow_layer_admin);
  visit(options.max_layer_loads, FLAGS_max_layer_loads);
  visit(options.max_layer_weights_bytes, FLAGS_max_layer_weights_bytes);
  visit(options.max_connection_age, FLAGS_max_connection_age);
  visit(options.max_connection_age_grace, FLAGS_max_connection_age_grace);
  visit(options.drain_timeout, FLAGS_drain_timeout);
  visit(options.log_format, FLAGS_log_format);
}

// A value as its flag would be written. Durations have a function of their own: absl::UnparseFlag is deprecated for
// them.
template <class T>
std::string Text(const T& value) {
  return absl::UnparseFlag(value);
}
std::string Text(absl::Duration value) { return absl::AbslUnparseFlag(value); }

// `text` in lines of at most `width`, each after `indent`.
std::string Wrapped(absl::string_view text, size_t width, absl::string_view indent) {
  std::string out;
  std::string line;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      absl::StrAppend(&out, indent, line, "\n");
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", word);
  }
  return absl::StrCat(out, indent, line, "\n");
}

// One of the server's own flags, or null: absl registers some of its own, such as flagfile.
absl::CommandLineFlag* FindServerFlag(absl::string_view name) {
  bool known = false;
  VisitOptions(Defaults(), [&](const auto&, const auto& flag) {
    known = known || absl::GetFlagReflectionHandle(flag).Name() == name;
  });
  return known ? absl::FindCommandLineFlag(name) : nullptr;
}

bool IsSwitch(absl::string_view name) {
  const absl::CommandLineFlag* flag = FindServerFlag(name);
  return flag != nullptr && flag->IsOfType<bool>();
}

bool IsBytes(absl::string_view name) { return absl::EndsWith(name, "_bytes"); }

// "256MiB" as "268435456", and what has no unit as it is. nullopt: no whole number is before the unit, or it is 2^63
// bytes and more.
std::optional<std::string> WithoutUnit(absl::string_view text) {
  constexpr std::pair<absl::string_view, int> kUnits[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
  for (const auto& [unit, power_of_2] : kUnits) {
    absl::string_view digits = text;
    if (!absl::ConsumeSuffix(&digits, unit)) continue;
    int64_t count = 0;
    const bool is_count = std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) &&
                          absl::SimpleAtoi(digits, &count) &&
                          count <= std::numeric_limits<int64_t>::max() >> power_of_2;
    return is_count ? std::optional(absl::StrCat(count << power_of_2)) : std::nullopt;
  }
  return std::string(text);
}

// What a value of `flag` must be.
absl::string_view RuleOf(const absl::CommandLineFlag& flag) {
  if (flag.IsOfType<bool>()) return "be true or false";
  if (flag.IsOfType<absl::Duration>()) return "be a time such as 500ms or 1m30s";
  if (flag.IsOfType<double>()) return "be a number";
  if (IsBytes(flag.Name())) return "be a number of bytes below 2^63, such as 268435456 or 256MiB";
  return flag.IsOfType<int>() ? "be a whole number below 2^31" : "be a whole number below 2^63";
}

absl::Status UnknownFlag(absl::string_view name) {
  const std::string underscored = absl::StrReplaceAll(name, {{"-", "_"}});
  return absl::InvalidArgumentError(
      absl::StrCat("there is no flag ", name.empty() ? "without a name" : absl::StrCat("--", absl::CHexEscape(name)),
                   FindServerFlag(underscored) == nullptr ? "" : absl::StrCat(", but --", underscored),
                   "; `triad-server --help` lists what there is"));
}

// One flag of the command line and the value that it gets.
struct Assignment {
  absl::string_view name;
  absl::string_view value;
};

// Reads the flag at `arguments[at]`; moves `at` on when its value is the next argument.
absl::StatusOr<Assignment> ReadFlag(const std::vector<std::string>& arguments, size_t& at) {
  const auto refuse = [](const auto&... words) { return absl::InvalidArgumentError(absl::StrCat(words...)); };
  absl::string_view name = arguments[at];
  const bool has_dashes = absl::ConsumePrefix(&name, "--") || absl::ConsumePrefix(&name, "-");
  if (!has_dashes || name.empty() || name[0] == '=') {
    return refuse("arguments are flags only, and a switch takes its value after =; was ", Quoted(arguments[at]));
  }
  const size_t equals = name.find('=');
  const bool has_value = equals != absl::string_view::npos;
  const absl::string_view value = has_value ? name.substr(equals + 1) : "";
  name = name.substr(0, equals);
  absl::string_view denied = name;
  if (FindServerFlag(name) == nullptr && absl::ConsumePrefix(&denied, "no") && FindServerFlag(denied) != nullptr) {
    if (!IsSwitch(denied)) return refuse("--", name, ": only switches have a no, and --", denied, " takes a value");
    if (has_value) return refuse("--", name, " takes no value; --", denied, " does");
    return Assignment{denied, "false"};
  }
  if (FindServerFlag(name) == nullptr) return UnknownFlag(name);
  if (has_value) return Assignment{name, value};
  if (IsSwitch(name)) return Assignment{name, "true"};
  if (at + 1 == arguments.size() || absl::StartsWith(arguments[at + 1], "--")) {
    return refuse("--", name, " needs a value");
  }
  return Assignment{name, arguments[++at]};
}

}  // namespace

absl::Status SetServerFlag(absl::string_view name, absl::string_view value) {
  absl::CommandLineFlag* flag = FindServerFlag(name);
  if (flag == nullptr) return UnknownFlag(name);
  const std::optional<std::string> text = IsBytes(name) ? WithoutUnit(value) : std::string(value);
  std::string absls_words;  // which do not name the rule
  if (text && flag->ParseFrom(*text, &absls_words)) return absl::OkStatus();
  return RefuseField(absl::StrCat("--", name), RuleOf(*flag), Quoted(value));
}

absl::StatusOr<ServerOptions> ParseServerFlags(const std::vector<std::string>& arguments) {
  // As absl::ParseCommandLine reads them, which would end the process where they are wrong, and of several flags of one
  // name keep the last: those that take several values add up.
  std::map<absl::string_view, std::string> lists;  // what has been given so far
  for (size_t i = 1; i < arguments.size(); ++i) {
    absl::StatusOr<Assignment> read = ReadFlag(arguments, i);
    if (!read.ok()) return read.status();
    if (FindServerFlag(read->name)->IsOfType<Strings>()) {
      const auto [list, is_first] = lists.try_emplace(read->name, read->value);
      if (!is_first) absl::StrAppend(&list->second, ",", read->value);
      read->value = list->second;
    }
    if (absl::Status status = SetServerFlag(read->name, read->value); !status.ok()) return status;
  }
  ServerOptions options;
  VisitOptions(options, [](auto& field, auto& flag) { field = absl::GetFlag(flag); });
  return options;
}

std::vector<std::pair<std::string, std::string>> DescribeServerOptions(const ServerOptions& options) {
  std::vector<std::pair<std::string, std::string>> lines;
  VisitOptions(options, [&](const auto& field, const auto& flag) {
    lines.emplace_back(absl::GetFlagReflectionHandle(flag).Name(), Text(field));
  });
  return lines;
}

std::string ServerFlagsHelp() {
  std::string help =
      "triad-server: multi-head attention over gRPC.\n\n"
      "Write --flag=value or --flag value; of a switch --flag, --flag=false or --noflag. Bytes may have a unit: "
      "64KiB,\n"
      "256MiB, 2GiB. Every flag may also be set as TRIAD_<FLAG> in the environment; the command line wins.\n\n";
  VisitOptions(Defaults(), [&](const auto& field, const auto& flag) {
    const absl::CommandLineFlag& handle = absl::GetFlagReflectionHandle(flag);
    absl::StrAppend(&help, "  --", handle.Name(), "=", Text(field), "\n",
                    Wrapped(handle.Help(), /*width=*/100, "      "));
  });
  return absl::StrCat(help, "  --help, --version\n");
}

}  // namespace triad
