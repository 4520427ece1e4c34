// The command line of `triad attend`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/tools/answer_flags.h"
#include "client/tools/connection_flags.h"
#include "client/tools/output_files.h"
#include "core/tensor/dtype.h"
#include "triad/attend.h"

namespace CLI {
class App;
}

namespace triad::tools {

struct AttendFlags {
  ConnectionFlags connection;
  client::AttendRequest request;  // what flags say; its tensors are not set
  std::optional<DType> dtype;     // what query, key and value are converted to; unset: as they are

  // Files to read: .safetensors for input, .npy for the others. Empty: not given.
  std::string input;
  std::string query;
  std::string key;
  std::string value;
  std::string keep;
  std::string bias;

  AnswerFlags answer;

  std::vector<NamedFile> inputs() const {
    return {{"--input", input}, {"--query", query}, {"--key", key},
            {"--value", value}, {"--keep", keep},   {"--bias", bias}};
  }
};

// Adds every flag to `command`. `flags` outlives the parse.
void AddAttendFlags(CLI::App& command, AttendFlags& flags);

}  // namespace triad::tools
