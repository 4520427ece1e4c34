#include "client/tools/import/checkpoint.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/tensor/file_bytes.h"

namespace triad::tools {
namespace {

constexpr char kConfig[] = "config.json";
constexpr char kWeights[] = "model.safetensors";
constexpr char kIndex[] = "model.safetensors.index.json";
constexpr size_t kMaxJsonBytes = size_t{64} << 20;  // an index of a million tensors takes some 100 bytes for each

// An object.
absl::StatusOr<nlohmann::json> ReadJson(const std::string& path) {
  const absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::Span<const std::byte> bytes = file->bytes();
  if (bytes.size() > kMaxJsonBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", bytes.size(), " bytes are past the limit of ", kMaxJsonBytes));
  }
  const char* text = reinterpret_cast<const char*>(bytes.data());
  nlohmann::json json = nlohmann::json::parse(text, text + bytes.size(), /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError(absl::StrCat(path, ": not a JSON object"));
  return json;
}

// A shard lies in the checkpoint's own folder: its name is no path.
bool IsShardName(const std::string& name) {
  return absl::EndsWith(name, ".safetensors") && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

absl::StatusOr<Checkpoint> Checkpoint::Open(const std::string& folder) {
  Checkpoint checkpoint;
  absl::StatusOr<nlohmann::json> config = ReadJson(absl::StrCat(folder, "/", kConfig));
  if (!config.ok()) return config.status();
  checkpoint.config_ = *std::move(config);
  absl::Status status = checkpoint.AddFile(folder, kWeights);
  if (absl::IsNotFound(status)) status = checkpoint.AddShards(folder);
  if (absl::IsNotFound(status) && checkpoint.files_.empty()) {
    return absl::NotFoundError(absl::StrCat(status.message(), "; nor is there ", kWeights,
                                            ". Other formats, such as pytorch_model.bin, are not read"));
  }
  if (!status.ok()) return status;
  return checkpoint;
}

absl::Status Checkpoint::AddFile(const std::string& folder, const std::string& file) {
  if (files_.count(file) > 0) return absl::OkStatus();
  absl::StatusOr<SafetensorsFile> opened = SafetensorsFile::Open(absl::StrCat(folder, "/", file));
  if (!opened.ok()) return opened.status();
  const auto entry = files_.emplace(file, *std::move(opened)).first;
  for (const std::string& name : entry->second.view().names()) {
    const auto [found, is_new] = tensors_.emplace(name, &*entry);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' is in ", found->second->first, " and again in ", file));
    }
  }
  return absl::OkStatus();
}

absl::Status Checkpoint::AddShards(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kIndex);
  const absl::StatusOr<nlohmann::json> index = ReadJson(path);
  if (!index.ok()) return index.status();
  const auto map = index->find("weight_map");
  if (map == index->end() || !map->is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": weight_map is not an object"));
  }
  for (const auto& [name, shard] : map->items()) {
    if (!shard.is_string() || !IsShardName(shard.get_ref<const std::string&>())) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": '", name, "': ", shard.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                       " is not the name of a .safetensors file in the same folder"));
    }
    const std::string& file = shard.get_ref<const std::string&>();
    if (absl::Status status = AddFile(folder, file); !status.ok()) return status;
    const auto found = tensors_.find(name);
    if (found == tensors_.end() || found->second->first != file) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": '", name, "' is not in ", file));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorView> Checkpoint::Find(absl::string_view tensor) const {
  const auto found = tensors_.find(std::string(tensor));
  if (found == tensors_.end()) return absl::NotFoundError(absl::StrCat("no tensor '", tensor, "'"));
  absl::StatusOr<TensorView> view = found->second->second.view().Find(tensor);
  if (!view.ok()) return NamePath(view.status(), found->second->first);
  return view;
}

std::vector<std::string> Checkpoint::NamesBelow(absl::string_view prefix) const {
  std::vector<std::string> names;
  for (auto it = tensors_.lower_bound(std::string(prefix)); it != tensors_.end(); ++it) {
    if (!absl::StartsWith(it->first, prefix)) break;
    names.push_back(it->first);
  }
  return names;
}

}  // namespace triad::tools
