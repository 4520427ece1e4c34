// The layer directory: <layer_dir>/<name>/<version>/ with layer.textproto and weights.safetensors.
//
// A folder is a version when its name spells one and it holds a layer.textproto; so write that file last. Nothing
// outside of the directory is read: a name is checked by CheckLayerName, and where symbolic links lead is checked by
// resolving them all (std::filesystem::canonical), of the folder and of both files. Who can change the directory
// between that check and the reading can change the weights themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace triad {

struct LayerFolder {
  std::string name;
  int64_t version = 0;
  std::string path;                // canonical
  int64_t weights_file_bytes = 0;  // also where that cannot be told: reading it will say why
};

// Where `name` (checked) lies; `version` unset: the highest that is there. NOT_FOUND: no such folder.
// FAILED_PRECONDITION: a symbolic link leads out of `layer_dir`, or `layer_dir` cannot be read. Messages, which go to
// clients, name what lies below `layer_dir` and not where that is. Blocks for the disk.
absl::StatusOr<LayerFolder> FindLayerFolder(const std::string& layer_dir, absl::string_view name,
                                            std::optional<int64_t> version);

// The names of all layers below `layer_dir` that have a version, sorted. Does not follow symbolic links between
// folders, and passes over those whose name begins with ".": they are being prepared. A folder that vanishes meanwhile
// is none. FAILED_PRECONDITION: a folder cannot be read; the message names it. Blocks for the disk.
absl::StatusOr<std::vector<std::string>> ListLayerNames(const std::string& layer_dir);

}  // namespace triad
