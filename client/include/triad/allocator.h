// The allocator decides how fast large messages are.
#pragma once

#include "absl/status/status.h"

namespace triad::client {

// Opt-in: tells glibc's malloc, for the whole process, to keep large buffers instead of mapping and faulting each anew:
// no mmap below 1 GiB, no trimming below 2 GiB, growth by 64 MiB, one arena. With 16 MiB messages over a unix socket
// that took gRPC from 0.25 to 3.4 GB/s; resident memory stays at its highest mark. Programs that allocate from many
// threads all the time pay for the one arena: measure.
//
// Call it first thing in main, before there are threads. UNIMPLEMENTED: not glibc; INTERNAL: glibc refused a setting.
absl::Status TuneAllocatorForLargeMessages();

}  // namespace triad::client
