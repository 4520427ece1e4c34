// The groups of rows that triad_bench_kernels has, and what every row is told.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <string>

#include "core/base/cpu.h"

namespace triad {

struct BenchOptions {
  double seconds = 3;  // measured per row, > 0
  int threads = 1;     // that compute at once, >= 1
  InstructionSet instruction_set = InstructionSet::kGeneric;
};

// Each registers a file's rows. Call before RunSpecifiedBenchmarks.
void RegisterAttentionRows(const BenchOptions& options);   // BM_Fused_*, BM_OneDnn_*
void RegisterThreadRows(const BenchOptions& options);      // BM_Threads2_*
void RegisterForwardRows(const BenchOptions& options);     // BM_Forward_*
void RegisterMemoryRows(const BenchOptions& options);      // BM_Memory_*
void RegisterStripRows(const BenchOptions& options);       // BM_Part_Strip_*
void RegisterFewRowsRows(const BenchOptions& options);     // BM_Part_FewRows_*
void RegisterPackingRows(const BenchOptions& options);     // BM_Part_Pack*, BM_Part_Transpose*
void RegisterProjectionRows(const BenchOptions& options);  // BM_Part_Projection_*

// Registers BM_<name>. `run` is called once: it repeats what it measures by itself (RowMeter), sets the iteration's
// time and the counters, and skips with an error when the result is wrong.
void RegisterRow(const std::string& name, std::function<void(benchmark::State&)> run);

}  // namespace triad
