#include "client/tools/forward_flags.h"

#include "CLI/CLI.hpp"
#include "client/tools/option_kinds.h"

namespace triad::tools {
namespace {

void AddLayerFlags(CLI::App& command, client::ForwardRequest& request) {
  const std::string group = "Layer";
  command.add_option("--layer", request.layer, "Its name, such as minilm/0; `triad layers list` shows what there is")
      ->required()
      ->group(group);
  command.add_option("--layer-version", request.version, "Its version; default: the highest that is loaded")
      ->group(group);
}

void AddInputFlags(CLI::App& command, ForwardFlags& flags) {
  const std::string group = "Tensors";
  client::ForwardRequest& request = flags.request;
  command
      .add_option("--input", flags.input,
                  "Hidden states: .npy, or .safetensors with tensors named input and, as needed, context, keep, bias; "
                  "the flags below come before it")
      ->type_name("FILE")
      ->required()
      ->group(group);
  AddFile(command, "--context", flags.context, "Cross-attention: where keys and values come from, .npy")->group(group);
  AddFile(command, "--keep", flags.keep, kKeepDescription)->group(group);
  AddFile(command, "--bias", flags.bias, kBiasDescription)->group(group);
  AddDtype(command, flags.dtype, "input and context")->group(group);
  AddChoice<client::Layout>(command, "--layout", request.layout,
                            {{"tokens_heads", client::Layout::kTokensHeads}, {"packed", client::Layout::kPacked}},
                            "How input and context lie: [batch, tokens, width] or [total tokens, width]")
      ->default_str("tokens_heads")
      ->group(group);
  AddList(command, "--lengths", request.lengths, "Valid tokens of each sequence, such as 5,3")->group(group);
  AddList(command, "--context-lengths", request.context_lengths, "Valid tokens of each sequence of context")
      ->group(group);
  AddList(command, "--position-offsets", request.position_offsets,
          "Rotary position of each sequence's first token, such as 0,128")
      ->group(group);
}

}  // namespace

void AddForwardFlags(CLI::App& command, ForwardFlags& flags) {
  AddConnectionFlags(command, flags.connection);
  AddLayerFlags(command, flags.request);
  AddInputFlags(command, flags);
  AddPriority(command, flags.request.priority)->group("Serving");
  AddAnswerFlags(command, flags.answer);
}

}  // namespace triad::tools
