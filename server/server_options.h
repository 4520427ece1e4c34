// Everything about a server that can be chosen, where it comes from, and whether it fits together.
//
// This is the only place that reads flags and the environment. Each field is a flag of the same name and a variable
// TRIAD_<FLAG>; a flag wins over the environment, which wins over the default below.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/attention/attention_request.h"
#include "core/attention/kernel_choice.h"
#include "core/base/cpu.h"
#include "core/batching/scheduler.h"
#include "server/log.h"

namespace triad {

struct ServerOptions {
  // For the bounds of one address: half of what all have. So one client does not take everything, and a gateway alone
  // has enough.
  static constexpr int64_t kHalfOfAll = -1;

  // Where.
  std::vector<std::string> listen = {"127.0.0.1:8470"};  // host:port or unix:path; port 0 picks a free one
  std::string http_listen = "127.0.0.1:8471";            // host:port; empty: no pages

  // Compute.
  int threads = 0;                       // 0: what CPU quota and affinity allow
  std::string instruction_set = "auto";  // or the most that may be used: "avx2", ...
  std::string kernel = "auto";           // or whose products all problems get: "fused", "onednn"

  // Bounds of one request.
  int64_t max_message_bytes = int64_t{256} << 20;
  int64_t max_tokens_per_request = AttentionLimits().max_tokens_per_request;
  int64_t max_head_dim = AttentionLimits().max_head_dim;
  int64_t max_batch = AttentionLimits().max_batch;
  // Pairs of a sequence and a kv head: each is a work item or more, of some 64 bytes of bookkeeping. A message of tiny
  // heads could otherwise be planned into many times its own size.
  int64_t max_head_sequences = int64_t{1} << 20;
  int64_t max_weights_bytes = AttentionLimits().max_weights_bytes;
  int64_t max_reference_work = int64_t{1} << 30;  // multiply-adds: a few seconds of one core

  // Bounds of all requests together.
  int64_t max_in_flight_bytes = SchedulerOptions().max_in_flight_bytes;
  int64_t max_in_flight_requests = SchedulerOptions().max_in_flight_requests;
  int64_t max_peer_in_flight_requests = kHalfOfAll;  // of one address; 0: no limit
  int64_t max_peer_in_flight_bytes = kHalfOfAll;     // likewise
  absl::Duration max_queue_time = absl::FromChrono(SchedulerOptions().max_queue_time);
  int64_t max_streams = 256;
  int64_t max_stream_items = 64;
  int64_t grpc_memory_bytes = int64_t{1} << 30;  // of messages still arriving, and of those read in place

  // Batching.
  int64_t max_batch_tokens = SchedulerOptions().max_batch_tokens;
  double max_batch_flop = SchedulerOptions().max_batch_flop;
  int64_t max_shared_tokens = SchedulerOptions().max_shared_tokens;
  int compute_niceness = 2;  // by measurement (DECISIONS.md)
  double max_inline_flop = SchedulerOptions().max_inline_flop;
  int64_t max_inline_bytes = SchedulerOptions().max_inline_bytes;

  // Layers.
  std::string layer_dir;  // <layer_dir>/<name>/<version>/; empty: none
  std::vector<std::string>
      layers;              // name[@version] to load at the start; empty: the highest version of all that are there
  bool demo_layer = true;  // hosts "demo", built in
  bool allow_layer_admin = false;  // LoadLayer and UnloadLayer
  int64_t max_layer_loads = 16;    // that wait or run at once
  // Of all loaded versions; 0: no limit. The attention of a model of eight billion parameters is 5.4 GB in f32.
  int64_t max_layer_weights_bytes = int64_t{8} << 30;

  // Operation.
  absl::Duration max_connection_age = absl::Minutes(30);
  absl::Duration max_connection_age_grace = absl::Minutes(5);
  absl::Duration drain_timeout = absl::Seconds(30);
  std::string log_format = "text";
};

// Reads flags and environment ("NAME=value", ending in null). Repeated --listen and --layers flags add up.
// Variables that an orchestrator sets for a service called "triad" or "triad-something" are none of the server's.
// INVALID_ARGUMENT: an argument or another TRIAD_ variable that is no flag, or a value that the flag or
// ResolveServerOptions refuses.
absl::StatusOr<ServerOptions> LoadServerOptions(int argc, char* argv[], const char* const environment[]);

// Checks `options`, and gives them with what follows from others (kHalfOfAll) filled in; resolving again changes
// nothing. INVALID_ARGUMENT names the flag, the rule and the value; also where two flags do not fit each other.
absl::StatusOr<ServerOptions> ResolveServerOptions(ServerOptions options);

// What --help or --version asks for, or nullopt when the arguments ask for neither.
std::optional<std::string> AnswerForHelpFlags(int argc, char* argv[]);

// Flag names and values, in the order of the struct.
std::vector<std::pair<std::string, std::string>> DescribeServerOptions(const ServerOptions& options);

// Parts of resolved options, as those who obey them want them.
AttentionLimits LimitsOf(const ServerOptions& options);
// Of gRPC's memory, what requests may hold of it (HeldBytes): always leaves room for the largest message to arrive.
int64_t MostHeldBytesOf(const ServerOptions& options);
// Calls one connection may have open, answered ones not counted: 8192, or twice what all may have in flight. So
// overload meets our own refusal, which says when to retry, and not a silent wait in the client.
int MaxCallsPerConnectionOf(const ServerOptions& options);
SchedulerOptions SchedulerOptionsOf(const ServerOptions& options, int threads);
LogFormat LogFormatOf(const ServerOptions& options);
KernelChoice KernelChoiceOf(const ServerOptions& options);

// The instruction set to use on a machine that has `detected`. INVALID_ARGUMENT when more than that is asked for.
absl::StatusOr<InstructionSet> ChooseInstructionSet(const ServerOptions& options, InstructionSet detected);

// "major.minor.patch" of this build.
absl::string_view ServerVersion();

}  // namespace triad
