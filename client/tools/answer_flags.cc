#include "client/tools/answer_flags.h"

#include "CLI/CLI.hpp"

namespace triad::tools {

void AddAnswerFlags(CLI::App& command, AnswerFlags& flags) {
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
  command.add_flag("--return-lse", flags.return_lse, "Ask for lse")->group(group);
  command
      .add_flag("--return-weights", flags.return_weights, "Ask for the weights: a number for each query, key and head")
      ->group(group);
}

}  // namespace triad::tools
