// Work on several threads at once, timed.
#pragma once

#include <functional>

namespace triad {

// Runs work(0) to work(threads - 1) at once, the first on the calling thread, and returns the seconds: of one thread
// its own (ThreadSeconds), of several the wall's. Blocks.
double RunOnThreads(int threads, const std::function<void(int thread)>& work);

// This thread's own time: what others do with the core between two of its slices is not the measured code's doing.
double ThreadSeconds();

}  // namespace triad
