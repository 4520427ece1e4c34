// What a call needs above its tensors: by how much the process's peak RSS grows past what it is before the call, when
// all tensors are there. The peak is reset in between (clear_refs of proc(5)), and memory that earlier rows freed is
// given back first, so that none of it is used unseen.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/attention/fused_attention.h"
#include "core/base/check.h"
#include "core/base/cpu.h"
#include "core/base/scratch.h"
#include "tests/bench/attention_workload.h"
#include "tests/bench/bench_rows.h"
#include "tests/bench/run_on_threads.h"

namespace triad {
namespace {

constexpr AttentionRow kRow = {
    .name = "F32_65536_HeadDim64_OneHead", .heads = 1, .kv_heads = 1, .q_len = 65536, .kv_len = 65536};

bool ResetPeakRss() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

// Of /proc/self/status, a line such as "VmHWM:     1234 kB".
std::optional<double> PeakRssMib() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "VmHWM:")) continue;
    const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    double kib = 0;
    if (words.size() == 3 && absl::SimpleAtod(words[1], &kib)) return kib / 1024;
  }
  return std::nullopt;
}

// One call, from planning on. Returns its seconds.
double Call(AttentionWorkload& workload, int threads) {
  const FusedAttention kernel(DetectInstructionSet());
  const std::vector<WorkItem> items = kernel.Plan(workload.problem());
  std::atomic<size_t> next{0};
  return RunOnThreads(threads, [&](int) {
    Scratch scratch;
    for (size_t i = next++; i < items.size(); i = next++) {
      TRIAD_CHECK(kernel.Run(workload.problem(), items[i], workload.outputs(), scratch).ok(), "the kernel runs");
    }
  });
}

void Run(benchmark::State& state, const BenchOptions& options) {
  AttentionWorkload workload(kRow);
  const auto output_bytes = static_cast<size_t>(kRow.q_len * kRow.head_dim * ByteSize(kRow.dtype));
  std::memset(workload.outputs().output, 1, output_bytes);  // so that its pages are there
  malloc_trim(0);
  const bool is_reset = ResetPeakRss();
  const std::optional<double> before = PeakRssMib();
  const double seconds = Call(workload, options.threads);
  const std::optional<double> after = PeakRssMib();
  state.SetIterationTime(seconds);
  state.counters["threads"] = options.threads;
  if (!is_reset || !before || !after) return state.SkipWithError("the peak of the RSS cannot be reset or read here");
  state.counters["peak_growth_mib"] = *after - *before;
  state.counters["best_flop_per_s"] = FlopNeeded(workload.problem()) / seconds;
  if (!workload.IsRight()) state.SkipWithError("the answer differs from the reference");
}

}  // namespace

void RegisterMemoryRows(const BenchOptions& options) {
  RegisterRow(std::string("Memory_") + kRow.name, [&options](benchmark::State& state) { Run(state, options); });
}

}  // namespace triad
