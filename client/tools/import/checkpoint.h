// A model as Hugging Face's libraries save it: a folder of config.json and .safetensors files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/tensor/safetensors_file.h"
#include "core/tensor/tensor.h"
#include "nlohmann/json.hpp"

namespace triad::tools {

// Owns the maps of the folder's files. Movable.
class Checkpoint {
 public:
  // Opens config.json, and model.safetensors or else every shard that model.safetensors.index.json lists. Reads no
  // weights. Errors name file, tensor and reason: NOT_FOUND and so on as the system says; INVALID_ARGUMENT for what is
  // not JSON, a shard outside the folder, a tensor that is in two shards or not in the shard that the index names.
  static absl::StatusOr<Checkpoint> Open(const std::string& folder);

  const nlohmann::json& config() const { return config_; }  // an object
  bool contains(absl::string_view tensor) const { return tensors_.count(std::string(tensor)) > 0; }
  // Borrows from this. Errors as SafetensorsView::Find; they name the file.
  absl::StatusOr<TensorView> Find(absl::string_view tensor) const;
  // Tensors whose names begin with `prefix`, sorted.
  std::vector<std::string> NamesBelow(absl::string_view prefix) const;

 private:
  Checkpoint() = default;
  // Opens one file of the folder and adds its tensors. Does nothing when it is open already.
  absl::Status AddFile(const std::string& folder, const std::string& file);
  absl::Status AddShards(const std::string& folder);

  nlohmann::json config_;
  std::map<std::string, SafetensorsFile> files_;                    // by name; nodes stay where they are
  std::map<std::string, decltype(files_)::const_pointer> tensors_;  // the entry of files_ that holds it
};

}  // namespace triad::tools
