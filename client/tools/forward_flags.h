// The command line of `triad forward`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/tools/answer_flags.h"
#include "client/tools/connection_flags.h"
#include "client/tools/output_files.h"
#include "core/tensor/dtype.h"
#include "triad/forward.h"

namespace CLI {
class App;
}

namespace triad::tools {

struct ForwardFlags {
  ConnectionFlags connection;
  client::ForwardRequest request;  // what flags say; its tensors are not set
  std::optional<DType> dtype;      // what input and context are converted to; unset: as they are

  // Files to read. Empty: not given.
  std::string input;  // .npy, or .safetensors with tensors named after the request's fields
  std::string context;
  std::string keep;
  std::string bias;

  AnswerFlags answer;

  std::vector<NamedFile> inputs() const {
    return {{"--input", input}, {"--context", context}, {"--keep", keep}, {"--bias", bias}};
  }
};

// Adds every flag to `command`. `flags` outlives the parse.
void AddForwardFlags(CLI::App& command, ForwardFlags& flags);

}  // namespace triad::tools
