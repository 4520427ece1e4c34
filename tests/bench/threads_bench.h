// Rows of the kernels' bench that run on two threads.
#pragma once

namespace triad {

// Registers BM_Threads2_*. Call before RunSpecifiedBenchmarks.
void RegisterThreadRows();

}  // namespace triad
