#include "server/stream_registry.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/refuse.h"

namespace triad {

absl::Status StreamRegistry::Add(std::shared_ptr<OpenStream> stream) {
  MutexLock lock(mu_);
  if (draining_) return DrainingError();
  if (static_cast<int64_t>(streams_.size()) >= max_streams_) {
    return absl::ResourceExhaustedError(absl::StrCat("--max_streams = ", max_streams_, " streams are open"));
  }
  const OpenStream* const key = stream.get();
  streams_.emplace(key, std::move(stream));
  return absl::OkStatus();
}

void StreamRegistry::Remove(const OpenStream* stream) {
  std::shared_ptr<OpenStream> removed;  // destroyed after the lock is released
  MutexLock lock(mu_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  removed = std::move(found->second);
  streams_.erase(found);
}

void StreamRegistry::BeginDrain() {
  std::vector<std::shared_ptr<OpenStream>> open;
  {
    MutexLock lock(mu_);
    draining_ = true;
    for (const auto& [key, stream] : streams_) open.push_back(stream);
  }
  for (const std::shared_ptr<OpenStream>& stream : open) stream->BeginDrain();
}

}  // namespace triad
