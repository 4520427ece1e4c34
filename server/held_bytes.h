// How much of gRPC's own memory requests may hold while they wait and are computed. It counts against the quota of
// messages that are still arriving (--grpc_memory_bytes), which must not starve.
#pragma once

#include <atomic>
#include <cstdint>

namespace triad {

// Thread-safe.
class HeldBytes {
 public:
  explicit HeldBytes(int64_t limit) : limit_(limit) {}

  // False, and nothing is held: it would be more than the limit.
  bool TryHold(int64_t bytes) {
    if (held_.fetch_add(bytes) + bytes <= limit_) return true;
    held_.fetch_sub(bytes);
    return false;
  }
  void LetGo(int64_t bytes) { held_.fetch_sub(bytes); }

 private:
  const int64_t limit_;
  std::atomic<int64_t> held_{0};
};

}  // namespace triad
