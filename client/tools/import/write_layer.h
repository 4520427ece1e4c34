// A layer folder on disk: <layer_dir>/<name>/<version>/{layer.textproto, weights.safetensors}.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/tools/import/plan_layer.h"

namespace triad::tools {

// Where a layer goes.
struct LayerPlace {
  std::string layer_dir;
  std::string name;  // parts joined by '/'
  int64_t version = 1;

  std::string folder() const;
};

// At most 200 letters, digits, '_', '-' and '.', in at most 8 parts joined by '/', as a server takes them; no part
// begins with '.' or '-', so that no name leaves the layer directory or hides in it. INVALID_ARGUMENT otherwise.
absl::Status CheckLayerName(absl::string_view name);

// ALREADY_EXISTS when there is something at `place`.
absl::Status CheckFree(const LayerPlace& place);

// Writes both files to a folder beside the final one and renames it: whoever looks sees the whole layer, or none. With
// `replace`, what is there is exchanged in one step (in two where the file system cannot) and removed; without,
// ALREADY_EXISTS. Errors as the system says, naming the path; nothing is left behind then.
absl::Status WriteLayer(const LayerPlan& plan, const LayerPlace& place, bool replace);

}  // namespace triad::tools
