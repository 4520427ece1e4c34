// Loads layers while others serve: on a thread of its own, one at a time, in the order they were asked for.
//
// A version serves once it has been read, packed and warmed up, and not before; when any of that fails, what served
// before serves on.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/layer/hosted_layer.h"
#include "server/layer_name.h"
#include "server/layer_source.h"
#include "server/layer_store.h"

namespace triad {

struct LayerLoadLimits {
  int64_t max_loads = 16;         // that wait and run at once, >= 1
  int64_t max_weights_bytes = 0;  // LayerStore::Totals::weights_bytes, and those of the load that runs; 0: no limit
};

class LayerLoader {
 public:
  // Told once what became of a load: the version that serves now, or why there is none.
  using Done = std::function<void(absl::StatusOr<LoadedLayer>)>;

  // `store` outlives the loader. RESOURCE_EXHAUSTED: the system has no thread left.
  static absl::StatusOr<std::unique_ptr<LayerLoader>> Create(const LayerLoadLimits& limits,
                                                             std::unique_ptr<LayerSource> source, LayerStore& store);

  // When to come back after the RESOURCE_EXHAUSTED of Submit: a load takes seconds.
  static constexpr Duration kRetryAfter = std::chrono::seconds(1);

  // As BeginDrain; waits for the load that runs, which nothing can stop.
  virtual ~LayerLoader() = default;

  // Loads on the calling thread: for the start, before anything is submitted. A version that serves already is kept and
  // returned: versions never change. Errors as LayerSource::Find and Read, with the layer's name; and
  // FAILED_PRECONDITION: with it there would be more than max_weights_bytes. By the size of its file it is not even
  // read then; by the size of what was packed it does not come to serve. Not RESOURCE_EXHAUSTED: no time cures it,
  // somebody has to unload a layer.
  virtual absl::StatusOr<LoadedLayer> LoadNow(const LayerChoice& choice) = 0;

  // LoadNow on the loader's thread, which calls `done`; on OK, once. Never blocks. RESOURCE_EXHAUSTED: max_loads wait
  // or run already. UNAVAILABLE: draining.
  virtual absl::Status Submit(LayerChoice choice, Done done) = 0;

  // No loads are accepted from here on; those that wait end with UNAVAILABLE, on the calling thread; the one that runs
  // is carried out.
  virtual void BeginDrain() = 0;

  // As BeginDrain, and whoever asked for the load that runs is told UNAVAILABLE, on the calling thread; its result is
  // told to nobody. True: there was one. Does not wait for it.
  virtual bool Abandon() = 0;

  // Destroys a share of a layer on the loader's thread, before the next load; from a drain on, maybe only with the
  // loader. It frees the layer there unless requests hold it for longer. Never blocks.
  virtual void Discard(std::shared_ptr<const HostedLayer> share) = 0;
};

}  // namespace triad
