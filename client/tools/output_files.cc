#include "client/tools/output_files.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "core/tensor/file_bytes.h"

namespace triad::tools {
namespace {

// Of what keeps what is written there: a terminal, a pipe and /dev/null take anything.
bool AreOneFile(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code error;  // of a path that is not there, or not to be looked at: then the paths decide
  if (fs::exists(a, error) && !fs::is_regular_file(a, error)) return false;
  const auto resolved = [&error](const std::string& path) {
    const fs::path absolute = fs::absolute(BehindLinks(path), error);
    const fs::path found = fs::weakly_canonical(absolute, error);
    return error ? absolute.lexically_normal() : found;
  };
  return fs::equivalent(a, b, error) || resolved(a) == resolved(b);
}

}  // namespace

absl::Status CheckOutputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  std::vector<NamedFile> taken = inputs;
  for (const NamedFile& output : outputs) {
    if (output.path.empty()) continue;
    for (const NamedFile& other : taken) {
      if (other.path.empty() || !AreOneFile(output.path, other.path)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(output.flag, " would overwrite the file of ", other.flag, ", ", other.path));
    }
    taken.push_back(output);
    if (absl::Status status = CheckWritable(output.path); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat(output.flag, " cannot be written: ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOutputFolder(const NamedFile& folder) {
  namespace fs = std::filesystem;
  std::error_code error;  // of a path below what is no folder
  fs::path there = fs::absolute(folder.path, error);
  while (there.has_relative_path() && fs::symlink_status(there, error).type() == fs::file_type::not_found) {
    there = there.parent_path();
  }
  if (fs::is_directory(there, error)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(folder.flag, " must be a folder, or not there yet; ", there.string(), " is none"));
}

}  // namespace triad::tools
