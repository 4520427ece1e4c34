#include "client/tools/attend_flags.h"

#include <cstdint>
#include <vector>

#include "CLI/CLI.hpp"
#include "client/tools/option_kinds.h"

namespace triad::tools {
namespace {

void AddInputFlags(CLI::App& command, AttendFlags& flags) {
  const std::string group = "Tensors";
  command
      .add_option(
          "--input", flags.input,
          "One .safetensors file with tensors named query, key, value and, as needed, keep, bias, alibi_slopes, sinks; "
          "the flags below come before it")
      ->type_name("FILE")
      ->group(group);
  AddFile(command, "--query", flags.query, "Queries, .npy")->group(group);
  AddFile(command, "--key", flags.key, "Keys, .npy")->group(group);
  AddFile(command, "--value", flags.value, "Values, .npy")->group(group);
  AddFile(command, "--keep", flags.keep, kKeepDescription)->group(group);
  AddFile(command, "--bias", flags.bias, kBiasDescription)->group(group);
  AddDtype(command, flags.dtype, "query, key and value")->group(group);
  AddChoice<client::Layout>(command, "--layout", flags.request.layout,
                            {{"tokens_heads", client::Layout::kTokensHeads},
                             {"heads_tokens", client::Layout::kHeadsTokens},
                             {"packed", client::Layout::kPacked}},
                            "How they lie: [batch, tokens, heads, dim], [batch, heads, tokens, dim] or "
                            "[total tokens, heads, dim]")
      ->default_str("tokens_heads")
      ->group(group);
  AddList(command, "--query-lengths", flags.request.query_lengths, "Valid queries of each sequence, such as 5,3")
      ->group(group);
  AddList(command, "--key-lengths", flags.request.key_lengths, "Valid keys of each sequence, such as 7,4")
      ->group(group);
}

void AddAttentionFlags(CLI::App& command, client::AttendRequest& request) {
  const std::string group = "Attention";
  const auto window = [&request]() -> client::Window& {
    return request.window ? *request.window : request.window.emplace();
  };
  command.add_option("--scale", request.scale, "Factor on query . key; default: 1 / sqrt(qk_head_dim)")->group(group);
  command.add_option("--logit-softcap", request.logit_softcap, "score = cap * tanh(score / cap); 0: off")->group(group);
  command.add_flag("--causal", request.causal, "Hide keys after a query's aligned position")->group(group);
  AddChoice<client::Alignment>(
      command, "--alignment", request.alignment,
      {{"top_left", client::Alignment::kTopLeft}, {"bottom_right", client::Alignment::kBottomRight}},
      "Where queries stand among the keys: query 0 at key 0, or the last query at the last key; needed with causal, "
      "window or ALiBi when the lengths differ or are given")
      ->group(group);
  command
      .add_option_function<int64_t>(
          "--window-left", [window](int64_t left) { window().left = left; }, "Keys before its own that a query sees")
      ->group(group);
  command
      .add_option_function<int64_t>(
          "--window-right", [window](int64_t right) { window().right = right; }, "Keys after its own that a query sees")
      ->group(group);
  command.add_flag("--alibi", request.alibi, "ALiBi with the paper's slopes")->group(group);
  AddList(command, "--alibi-slopes", request.alibi_slopes, "ALiBi with these slopes, one per head")->group(group);
  AddList(command, "--sinks", request.sinks, "An extra logit for each head; -inf: none. Write --sinks=-inf,0.5")
      ->group(group);
}

void AddServingFlags(CLI::App& command, client::AttendRequest& request) {
  const std::string group = "Serving";
  AddChoice<client::Kernel>(command, "--kernel", request.kernel,
                            {{"auto", client::Kernel::kAuto}, {"reference", client::Kernel::kReference}},
                            "The fastest, or plain loops in double precision")
      ->default_str("auto")
      ->group(group);
  AddPriority(command, request.priority)->group(group);
}

}  // namespace

void AddAttendFlags(CLI::App& command, AttendFlags& flags) {
  AddConnectionFlags(command, flags.connection);
  AddInputFlags(command, flags);
  AddAttentionFlags(command, flags.request);
  AddServingFlags(command, flags.request);
  AddAnswerFlags(command, flags.answer);
}

}  // namespace triad::tools
