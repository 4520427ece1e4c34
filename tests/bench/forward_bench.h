// Rows of the kernels' bench that run a whole hosted layer.
#pragma once

namespace triad {

// Registers BM_Forward_*. Call before RunSpecifiedBenchmarks.
void RegisterForwardRows();

}  // namespace triad
