// Settings of the C allocator for a process that moves large messages.
#pragma once

namespace triad {

// Call first in main, before any thread or large allocation exists.
void TuneAllocator();

}  // namespace triad
