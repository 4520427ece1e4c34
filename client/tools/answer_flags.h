// Where a command that gets tensors back puts them.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace triad::tools {

struct AnswerFlags {
  // Files to write: .npy, or .safetensors, which several may share. Empty: not wanted as a file.
  std::string output;
  std::string lse;
  std::string weights;

  bool return_lse = false;      // asked for by a flag of its own
  bool return_weights = false;  // likewise

  bool wants_lse() const { return return_lse || !lse.empty(); }
  bool wants_weights() const { return return_weights || !weights.empty(); }
};

// Adds --output, --lse, --weights, --return-lse and --return-weights to `command`. `flags` outlives the parse.
void AddAnswerFlags(CLI::App& command, AnswerFlags& flags);

}  // namespace triad::tools
