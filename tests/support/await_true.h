// Waiting for what signals nothing that a test could wait on: other threads, other processes, the other end of a line.
#pragma once

#include <functional>
#include <thread>

namespace triad {

// The test's own time limit ends what never comes true.
inline void AwaitTrue(const std::function<bool()>& condition) {
  while (!condition()) std::this_thread::yield();
}

}  // namespace triad
