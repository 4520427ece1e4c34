// The layers that serve: names, their versions, and the weights behind them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "core/layer/hosted_layer.h"

namespace triad {

struct LoadedLayer {
  std::string name;
  int64_t version = 0;  // > 0
  // Shared by the store and by every request that began with it: a version taken out of service lives on until the last
  // of them is answered.
  std::shared_ptr<const HostedLayer> layer;
};

// Thread-safe; never blocks. The last share of a layer is given up by whoever holds it, without the lock.
class LayerStore {
 public:
  // `version` unset: the highest that is loaded. NOT_FOUND says what is loaded.
  absl::StatusOr<LoadedLayer> Find(absl::string_view name, std::optional<int64_t> version) const;

  // By name, then version; only those called `name`, unless it is empty.
  std::vector<LoadedLayer> List(absl::string_view name = "") const;

  // From here on it serves. False: that version of that name serves already, and stays.
  bool Publish(LoadedLayer layer);

  // Takes a version out of service and returns the store's share of it, which may be the last: giving back gigabytes
  // takes long. NOT_FOUND as Find.
  absl::StatusOr<std::shared_ptr<const HostedLayer>> Remove(absl::string_view name, int64_t version);

  // For gauges and bounds.
  struct Totals {
    int64_t layers = 0;         // versions that serve
    int64_t weights_bytes = 0;  // theirs, and those of removed ones that somebody still holds
  };
  Totals totals() const;

 private:
  using Versions = std::map<int64_t, std::shared_ptr<const HostedLayer>>;
  struct Removed {
    std::weak_ptr<const HostedLayer> layer;
    int64_t weights_bytes = 0;
  };

  absl::Status NotFound(absl::string_view name, std::optional<int64_t> version) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable Mutex mu_;                                                          // guards all below
  std::map<std::string, Versions, std::less<>> layers_ ABSL_GUARDED_BY(mu_);  // none without versions
  std::vector<Removed> removed_ ABSL_GUARDED_BY(mu_);                         // and maybe gone since
};

}  // namespace triad
