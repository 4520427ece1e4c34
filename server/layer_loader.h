// Loads layers while others serve: on a thread of its own, one at a time, in the order they were asked for.
//
// A version serves once it has been read, packed and warmed up, and not before; when any of that fails, what served
// before serves on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/layer_name.h"
#include "server/layer_source.h"
#include "server/layer_store.h"

namespace triad {

class LayerLoader {
 public:
  // Told once what became of a load: the version that serves now, or why there is none.
  using Done = std::function<void(absl::StatusOr<LoadedLayer>)>;

  // At most `max_loads` (>= 1) wait and run at once. `store` outlives the loader. RESOURCE_EXHAUSTED: the system has no
  // thread left.
  static absl::StatusOr<std::unique_ptr<LayerLoader>> Create(int64_t max_loads, std::unique_ptr<LayerSource> source,
                                                             LayerStore& store);

  // As BeginDrain; waits for the load that runs.
  virtual ~LayerLoader() = default;

  // Loads on the calling thread: for the start, before anything is submitted. A version that serves already is kept and
  // returned: versions never change. Errors as LayerSource::Find and Read, with the layer's name.
  virtual absl::StatusOr<LoadedLayer> LoadNow(const LayerChoice& choice) = 0;

  // LoadNow on the loader's thread, which calls `done`; on OK, once. Never blocks. RESOURCE_EXHAUSTED: max_loads wait
  // or run already. UNAVAILABLE: draining.
  virtual absl::Status Submit(LayerChoice choice, Done done) = 0;

  // No loads are accepted from here on; those that wait end with UNAVAILABLE, on the calling thread; the one that runs
  // is carried out.
  virtual void BeginDrain() = 0;
};

}  // namespace triad
