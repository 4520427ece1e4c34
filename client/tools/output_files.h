// Files that a command writes, looked at before it does anything.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace triad::tools {

// A file and the flag that names it.
struct NamedFile {
  std::string flag;
  std::string path;  // empty: the flag was not given
};

// That all `outputs` can be written, each without overwriting another one or one of `inputs`, however their paths are
// spelled. Errors name the flags; INVALID_ARGUMENT: a file is two of them; else as CheckWritable.
absl::Status CheckOutputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

// That `folder` is one, or can become one: what is there of its path is a folder. INVALID_ARGUMENT otherwise.
absl::Status CheckOutputFolder(const NamedFile& folder);

}  // namespace triad::tools
