#include "client/tools/attend_flags.h"

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"

namespace triad::tools {
namespace {

// An option that takes one of a few words.
template <class T>
CLI::Option* AddChoice(CLI::App& command, const std::string& name, T& target,
                       const std::vector<std::pair<std::string, T>>& choices, const std::string& description) {
  std::vector<std::string> words;
  for (const auto& [word, value] : choices) words.push_back(word);
  const auto assign = [&target, choices](const std::string& text) {
    for (const auto& [word, value] : choices) {
      if (word == text) target = value;
    }
  };
  return command.add_option_function<std::string>(name, assign, description)->check(CLI::IsMember(words));
}

// An option that takes numbers separated by commas.
template <class T>
CLI::Option* AddList(CLI::App& command, const std::string& name, T& target, const std::string& description) {
  return command.add_option(name, target, description)->delimiter(',')->allow_extra_args(false);
}

void AddInputFlags(CLI::App& command, AttendFlags& flags) {
  const std::string group = "Tensors";
  command
      .add_option(
          "--input", flags.input,
          "One .safetensors file with tensors named query, key, value and, as needed, keep, bias, alibi_slopes, sinks; "
          "the flags below come before it")
      ->type_name("FILE")
      ->group(group);
  const std::tuple<const char*, std::string&, const char*> files[] = {
      {"--query", flags.query, "Queries, .npy"},
      {"--key", flags.key, "Keys, .npy"},
      {"--value", flags.value, "Values, .npy"},
      {"--keep", flags.keep, "What is visible, .npy: booleans or bytes, 0 = hidden"},
      {"--bias", flags.bias, "What is added to the scores, .npy"},
  };
  for (const auto& [name, path, description] : files) {
    command.add_option(name, path, description)->type_name("FILE.npy")->group(group);
  }
  AddChoice<std::optional<DType>>(command, "--dtype", flags.dtype,
                                  {{"f32", DType::kF32}, {"bf16", DType::kBf16}, {"f16", DType::kF16}},
                                  "Convert query, key and value to this before sending, from doubles and integers too; "
                                  "bf16 also takes two-byte void .npy files (as ml_dtypes writes them) for bfloat16")
      ->group(group);
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
  AddChoice<client::Priority>(command, "--priority", request.priority,
                              {{"normal", client::Priority::kNormal}, {"low", client::Priority::kLow}},
                              "What goes first under load")
      ->default_str("normal")
      ->group(group);
}

void AddOutputFlags(CLI::App& command, AttendFlags& flags) {
  const std::string group = "Answer";
  command
      .add_option(
          "--output", flags.output,
          "Where to write the output: .npy, or .safetensors, which then holds lse and weights too where they are "
          "asked for without a file of their own")
      ->type_name("FILE")
      ->group(group);
  command.add_option("--lse", flags.lse, "Ask for lse and write it to .npy or .safetensors")
      ->type_name("FILE")
      ->group(group);
  command.add_option("--weights", flags.weights, "Ask for the weights and write them to .npy or .safetensors")
      ->type_name("FILE")
      ->group(group);
  command.add_flag("--return-lse", flags.request.return_lse, "Ask for lse")->group(group);
  command
      .add_flag("--return-weights", flags.request.return_weights, "Ask for the weights, q_len x kv_len for each head")
      ->group(group);
}

}  // namespace

void AddAttendFlags(CLI::App& command, AttendFlags& flags) {
  AddConnectionFlags(command, flags.connection);
  AddInputFlags(command, flags);
  AddAttentionFlags(command, flags.request);
  AddServingFlags(command, flags.request);
  AddOutputFlags(command, flags);
}

}  // namespace triad::tools
