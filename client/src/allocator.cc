#include "triad/allocator.h"

#include <climits>
#include <cstdlib>  // defines __GLIBC__

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace triad::client {

absl::Status TuneAllocatorForLargeMessages() {
#ifdef __GLIBC__
  constexpr int kMmapThresholdBytes = 1 << 30;
  constexpr int kTrimThresholdBytes = INT_MAX;  // 2 GiB, the most that mallopt can say
  constexpr int kTopPadBytes = 64 << 20;
  const bool accepted = mallopt(M_ARENA_MAX, 1) != 0 && mallopt(M_MMAP_THRESHOLD, kMmapThresholdBytes) != 0 &&
                        mallopt(M_TRIM_THRESHOLD, kTrimThresholdBytes) != 0 && mallopt(M_TOP_PAD, kTopPadBytes) != 0;
  return accepted ? absl::OkStatus() : absl::InternalError("mallopt refused a setting");
#else
  return absl::UnimplementedError("this C library is not glibc; there is nothing to tune");
#endif
}

}  // namespace triad::client
