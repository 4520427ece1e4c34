#include "server/layer_directory.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/layer_name.h"
#include "server/refuse.h"

namespace triad {
namespace {

namespace fs = std::filesystem;

constexpr char kSpecFile[] = "layer.textproto";
constexpr char kWeightsFile[] = "weights.safetensors";

absl::Status CannotRead(absl::string_view what, const std::error_code& error) {
  return absl::FailedPreconditionError(absl::StrCat("cannot read ", what, ": ", error.message()));
}

// What clients are told of `path` below `root`: not where the directory lies.
std::string Below(const fs::path& root, const fs::path& path) { return path.lexically_relative(root).string(); }

bool HoldsSpec(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kSpecFile, error);
}

// Whether `path` lies below `root`; both canonical.
bool IsBelow(const fs::path& path, const fs::path& root) {
  const auto [in_root, in_path] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  return in_root == root.end() && in_path != path.end();
}

// The canonical form of `path`, which must lie below `root`. NOT_FOUND: it does not exist.
absl::StatusOr<fs::path> Resolve(const fs::path& path, const fs::path& root) {
  std::error_code error;
  fs::path resolved = fs::canonical(path, error);
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) {
    return absl::NotFoundError(absl::StrCat("there is no ", Below(root, path), " in the layer directory"));
  }
  if (error) return CannotRead(Below(root, path), error);
  if (IsBelow(resolved, root)) return resolved;
  return absl::FailedPreconditionError(
      absl::StrCat(Below(root, path), " must lie in the layer directory; a symbolic link leads out of it"));
}

// `layer` lies below `root`.
absl::StatusOr<int64_t> HighestVersion(const fs::path& layer, const fs::path& root) {
  std::error_code error;
  fs::directory_iterator entries(layer, error);
  if (error == std::errc::not_a_directory)
    return absl::NotFoundError(absl::StrCat("there is no folder ", Below(root, layer), " in the layer directory"));
  if (error) return CannotRead(Below(root, layer), error);
  int64_t highest = 0;
  for (const fs::directory_iterator end; entries != end; entries.increment(error)) {
    const std::optional<int64_t> version = ParseLayerVersion(entries->path().filename().string());
    if (version && *version > highest && HoldsSpec(entries->path())) highest = *version;
  }
  if (error) return CannotRead(Below(root, layer), error);
  if (highest > 0) return highest;
  return absl::NotFoundError(absl::StrCat("there is no version with a ", kSpecFile, " in ", Below(root, layer)));
}

// Adds to `names` what lies at or below `folder`, which is called `name`; a folder that has gone meanwhile holds
// nothing.
absl::Status Collect(const fs::path& folder, const std::string& name, std::set<std::string>& names) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error == std::errc::no_such_file_or_directory && !name.empty()) return absl::OkStatus();
  if (error) return CannotRead(folder.string(), error);
  for (const fs::directory_iterator end; entries != end; entries.increment(error)) {
    const fs::directory_entry& entry = *entries;
    const std::string segment = entry.path().filename().string();
    if (segment[0] == '.') continue;
    std::error_code unknown;  // neither a folder nor a link: not ours
    if (!entry.is_directory(unknown)) continue;
    if (!name.empty() && ParseLayerVersion(segment) && HoldsSpec(entry.path())) {
      names.insert(name);
      continue;
    }
    const std::string below = name.empty() ? segment : absl::StrCat(name, "/", segment);
    if (entry.is_symlink(unknown) || !CheckLayerName("name", below).ok()) continue;
    if (absl::Status status = Collect(entry.path(), below, names); !status.ok()) return status;
  }
  return error && error != std::errc::no_such_file_or_directory ? CannotRead(folder.string(), error) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<LayerFolder> FindLayerFolder(const std::string& layer_dir, absl::string_view name,
                                            std::optional<int64_t> version) {
  std::error_code error;
  const fs::path root = fs::canonical(layer_dir, error);
  if (error) return CannotRead("the layer directory", error);
  const absl::StatusOr<fs::path> layer = Resolve(root / std::string(name), root);
  if (!layer.ok()) return layer.status();
  if (!version) {
    absl::StatusOr<int64_t> highest = HighestVersion(*layer, root);
    if (!highest.ok()) return highest.status();
    version = *highest;
  }
  const absl::StatusOr<fs::path> folder = Resolve(*layer / std::to_string(*version), root);
  if (!folder.ok()) return folder.status();
  for (const char* file : {kSpecFile, kWeightsFile}) {
    if (absl::StatusOr<fs::path> found = Resolve(*folder / file, root); !found.ok()) return found.status();
  }
  const uintmax_t bytes = fs::file_size(*folder / kWeightsFile, error);
  return LayerFolder{.name = std::string(name),
                     .version = *version,
                     .path = folder->string(),
                     .weights_file_bytes = error ? 0 : static_cast<int64_t>(bytes)};
}

absl::StatusOr<std::vector<std::string>> ListLayerNames(const std::string& layer_dir) {
  std::set<std::string> names;
  if (absl::Status status = Collect(layer_dir, /*name=*/"", names); !status.ok()) return status;
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace triad
