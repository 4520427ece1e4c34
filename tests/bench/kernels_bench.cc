// The kernels' speed, whole and in parts, each row beside the machine's own limit in the same process: the FMA peak, or
// a plain read of as much memory.
//
//   triad_bench_kernels                               all rows: BM_Fused_*, BM_OneDnn_*, BM_Threads2_*, BM_Forward_*,
//                                                     BM_Memory_*, BM_Part_*
//   triad_bench_kernels --benchmark_filter=Causal     those that match
//   triad_bench_kernels --seconds=10                  each for longer than 3 s
//   triad_bench_kernels --threads=2                   on so many threads, beside the limit of as many
//   triad_bench_kernels --instruction_set=avx2        the kernels and the limit capped to it
//   triad_bench_kernels --benchmark_out=FILE --benchmark_out_format=json
//
// row_meter.h says how a row is measured. Counters: <limit>_ratio_median and <limit>_ratio_best, of `peak` (or
// `bf16_peak`), `stream` (one plain read) and `best_stream` (the best of 1, 2, 4 and 8 parallel ones); best_flop_per_s
// or best_bytes_per_s; the limits themselves (peak_flop_per_s); cores, what the worst probe found; calls, thrown_away.
// Each row checks its result once.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "core/attention/fast_attention.h"
#include "tests/bench/bench_rows.h"

ABSL_FLAG(double, seconds, 3, "Measured per row.");
ABSL_FLAG(int, threads, 1, "That compute at once. BM_Threads2_* have two whatever this says.");
ABSL_FLAG(std::string, instruction_set, "auto", "The most the kernels may use: auto, generic, avx2, avx512, ...");

namespace triad {
namespace {

// Dies with a message when a flag makes no sense.
BenchOptions OptionsFromFlags() {
  BenchOptions options{.seconds = absl::GetFlag(FLAGS_seconds), .threads = absl::GetFlag(FLAGS_threads)};
  const auto refuse = [](const char* why) {
    std::cerr << why << "\n";
    std::exit(2);
  };
  if (!(options.seconds > 0)) refuse("--seconds must be positive");
  if (options.threads < 1 || options.threads > 1024) refuse("--threads must be 1 to 1024");
  options.instruction_set = DetectInstructionSet();
  const std::string wanted = absl::GetFlag(FLAGS_instruction_set);
  if (wanted == "auto") return options;
  for (const InstructionSet isa : {InstructionSet::kGeneric, InstructionSet::kAvx2, InstructionSet::kAvx512,
                                   InstructionSet::kAvx512Bf16, InstructionSet::kAmxBf16}) {
    if (wanted != Name(isa)) continue;
    options.instruction_set = std::min(options.instruction_set, isa);
    return options;
  }
  refuse("--instruction_set must be auto, generic, avx2, avx512, avx512_bf16 or amx_bf16");
  return options;
}

}  // namespace
}  // namespace triad

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  const triad::BenchOptions options = triad::OptionsFromFlags();
  if (absl::Status status = triad::UseInstructionSet(options.instruction_set); !status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  triad::RegisterAttentionRows(options);
  triad::RegisterThreadRows(options);
  triad::RegisterForwardRows(options);
  triad::RegisterMemoryRows(options);
  triad::RegisterStripRows(options);
  triad::RegisterFewRowsRows(options);
  triad::RegisterPackingRows(options);
  triad::RegisterProjectionRows(options);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
