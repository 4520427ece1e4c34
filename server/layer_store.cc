#include "server/layer_store.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/refuse.h"

namespace triad {
namespace {

// Versions that an error names; there may be thousands.
constexpr int64_t kMaxNamed = 12;

// Layers are keyed by string; absl's view is not the standard one everywhere.
std::string Key(absl::string_view name) { return std::string(name); }

}  // namespace

absl::StatusOr<LoadedLayer> LayerStore::Find(absl::string_view name, std::optional<int64_t> version) const {
  MutexLock lock(mu_);
  const auto versions = layers_.find(Key(name));
  if (versions == layers_.end()) return NotFound(name, version);
  const auto found = version ? versions->second.find(*version) : std::prev(versions->second.end());
  if (found == versions->second.end()) return NotFound(name, version);
  return LoadedLayer{.name = versions->first, .version = found->first, .layer = found->second};
}

std::vector<LoadedLayer> LayerStore::List(absl::string_view name) const {
  std::vector<LoadedLayer> list;
  MutexLock lock(mu_);
  for (const auto& [key, versions] : layers_) {
    if (!name.empty() && key != Key(name)) continue;
    for (const auto& [version, layer] : versions) list.push_back({.name = key, .version = version, .layer = layer});
  }
  return list;
}

bool LayerStore::Publish(LoadedLayer layer) {
  MutexLock lock(mu_);
  return layers_[layer.name].emplace(layer.version, layer.layer).second;
}

absl::StatusOr<std::shared_ptr<const HostedLayer>> LayerStore::Remove(absl::string_view name, int64_t version) {
  MutexLock lock(mu_);
  const auto versions = layers_.find(Key(name));
  if (versions == layers_.end()) return NotFound(name, version);
  const auto found = versions->second.find(version);
  if (found == versions->second.end()) return NotFound(name, version);
  std::shared_ptr<const HostedLayer> removed = std::move(found->second);
  versions->second.erase(found);
  if (versions->second.empty()) layers_.erase(versions);
  std::erase_if(removed_, [](const Removed& earlier) { return earlier.layer.expired(); });
  removed_.push_back({.layer = removed, .weights_bytes = removed->weights_bytes()});
  return removed;
}

LayerStore::Totals LayerStore::totals() const {
  Totals totals;
  MutexLock lock(mu_);
  for (const auto& [name, versions] : layers_) {
    for (const auto& [version, layer] : versions) {
      ++totals.layers;
      totals.weights_bytes += layer->weights_bytes();
    }
  }
  for (const Removed& removed : removed_) {
    if (!removed.layer.expired()) totals.weights_bytes += removed.weights_bytes;
  }
  return totals;
}

absl::Status LayerStore::NotFound(absl::string_view name, std::optional<int64_t> version) const {
  std::string loaded;
  int64_t versions_seen = 0;
  for (const auto& [key, versions] : layers_) {
    for (const auto& [number, layer] : versions) {
      if (++versions_seen > kMaxNamed) continue;
      absl::StrAppend(&loaded, versions_seen == 1 ? " " : ", ", key, "@", number);
    }
  }
  if (versions_seen == 0) loaded = " none";
  if (versions_seen > kMaxNamed) absl::StrAppend(&loaded, " and ", versions_seen - kMaxNamed, " more");
  return absl::NotFoundError(absl::StrCat("no layer ", Quoted(name), version ? absl::StrCat(" version ", *version) : "",
                                          " is loaded; loaded are:", loaded));
}

}  // namespace triad
