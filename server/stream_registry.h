// The streams that are open: how many there may be, and whom to tell that the server drains.
#pragma once

#include <memory>
#include <unordered_map>

#include "absl/status/status.h"
#include "core/base/mutex.h"

namespace triad {

class OpenStream {
 public:
  virtual ~OpenStream() = default;
  // Called once, from any thread, no lock held.
  virtual void BeginDrain() = 0;
};

// Thread-safe; never blocks.
class StreamRegistry {
 public:
  explicit StreamRegistry(int64_t max_streams) : max_streams_(max_streams) {}

  // Keeps a share in `stream` until Remove. RESOURCE_EXHAUSTED: there are max_streams. UNAVAILABLE: draining.
  absl::Status Add(std::shared_ptr<OpenStream> stream);
  // Nothing when it is not there.
  void Remove(const OpenStream* stream);

  // Tells every open stream; no more are added.
  void BeginDrain();

 private:
  const int64_t max_streams_;
  Mutex mu_;  // guards all below
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  std::unordered_map<const OpenStream*, std::shared_ptr<OpenStream>> streams_ ABSL_GUARDED_BY(mu_);
};

}  // namespace triad
