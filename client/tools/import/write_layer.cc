#include "client/tools/import/write_layer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "core/tensor/file_bytes.h"
#include "core/tensor/safetensors_file.h"

namespace triad::tools {
namespace {

// A server's limits.
constexpr size_t kMaxNameBytes = 200;
constexpr size_t kMaxNameParts = 8;

absl::Status Failure(const std::error_code& error, const std::string& path) {
  return absl::ErrnoToStatus(error.value(), path);
}

absl::Status AlreadyExists(const std::string& folder) {
  return absl::AlreadyExistsError(absl::StrCat(folder, ": there is a layer already; --force replaces it"));
}

// A new folder beside `target`, removed with all that is in it at the end of its scope. Its name begins with a dot:
// no version.
class StagingFolder {
 public:
  static absl::StatusOr<StagingFolder> Create(const std::string& target) {
    const std::filesystem::path path(target);
    std::string pattern = path.parent_path() / absl::StrCat(".", path.filename().string(), ".import-XXXXXX");
    if (mkdtemp(pattern.data()) == nullptr) return absl::ErrnoToStatus(errno, pattern);
    StagingFolder folder(std::move(pattern));
    // mkdtemp keeps others out; a layer is as readable as any new folder.
    const mode_t mask = umask(0);
    umask(mask);
    if (chmod(folder.path_.c_str(), 0777 & ~mask) != 0) return absl::ErrnoToStatus(errno, folder.path_);
    return folder;
  }
  StagingFolder(StagingFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  StagingFolder& operator=(StagingFolder&&) = delete;
  ~StagingFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  // Its path; it stays.
  std::string Keep() { return std::exchange(path_, ""); }

 private:
  explicit StagingFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

absl::Status WriteFiles(const LayerPlan& plan, const std::string& folder) {
  const absl::Status status = WriteSafetensors(absl::StrCat(folder, "/weights.safetensors"), plan.tensors);
  if (!status.ok()) return status;
  return WriteFile(absl::StrCat(folder, "/layer.textproto"), {FormatLayer(plan.text)});
}

// Puts `staging` in the place of `target`, and what was there in the place of `staging`.
absl::Status Exchange(const StagingFolder& staging, const std::string& target) {
  const char* from = staging.path().c_str();
  if (renameat2(AT_FDCWD, from, AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return absl::OkStatus();
  if (errno != EINVAL && errno != ENOSYS) return absl::ErrnoToStatus(errno, target);
  absl::StatusOr<StagingFolder> old = StagingFolder::Create(target);
  if (!old.ok()) return old.status();
  if (rename(target.c_str(), old->path().c_str()) != 0) return absl::ErrnoToStatus(errno, target);
  if (rename(from, target.c_str()) == 0) return absl::OkStatus();
  const absl::Status status = absl::ErrnoToStatus(errno, target);
  if (rename(old->path().c_str(), target.c_str()) == 0) return status;
  return absl::DataLossError(absl::StrCat(status.message(), "; the layer that was there is in ", old->Keep()));
}

}  // namespace

std::string LayerPlace::folder() const { return absl::StrCat(layer_dir, "/", name, "/", version); }

absl::Status CheckLayerName(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  const auto is_fine = [](absl::string_view part) {
    const auto is_allowed = [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.'; };
    return !part.empty() && part[0] != '.' && part[0] != '-' && std::all_of(part.begin(), part.end(), is_allowed);
  };
  if (name.size() <= kMaxNameBytes && parts.size() <= kMaxNameParts &&
      std::all_of(parts.begin(), parts.end(), is_fine)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a layer's name has at most ", kMaxNameBytes, " letters, digits, '_', '-' and '.' in at most ",
                   kMaxNameParts, " parts joined by '/', none of which begins with '.' or '-'; was '", name, "'"));
}

absl::Status CheckFree(const LayerPlace& place) {
  std::error_code error;
  const bool exists = std::filesystem::exists(std::filesystem::symlink_status(place.folder(), error));
  return exists ? AlreadyExists(place.folder()) : absl::OkStatus();
}

absl::Status WriteLayer(const LayerPlan& plan, const LayerPlace& place, bool replace) {
  const std::string target = place.folder();
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(target).parent_path(), error);
  if (error) return Failure(error, target);
  absl::StatusOr<StagingFolder> staging = StagingFolder::Create(target);
  if (!staging.ok()) return staging.status();
  if (absl::Status status = WriteFiles(plan, staging->path()); !status.ok()) return status;
  // Refuses what another process has put there since the caller looked, but for an empty folder.
  if (rename(staging->path().c_str(), target.c_str()) == 0) return absl::OkStatus();
  const bool is_taken = errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR;
  if (!is_taken) return absl::ErrnoToStatus(errno, target);
  return replace ? Exchange(*staging, target) : AlreadyExists(target);
}

}  // namespace triad::tools
