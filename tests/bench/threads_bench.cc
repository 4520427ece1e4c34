// What a second thread adds, beside what it adds to the FMA loop or, for decode, to a plain read of the same keys and
// values: the machine's own limit, measured in the same second. On shared machines the second core comes and goes:
// repetitions in which the FMA loop itself gains less than 1.9 are thrown away and counted.
#include "tests/bench/threads_bench.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/attention/fused_attention.h"
#include "core/base/check.h"
#include "core/base/scratch.h"
#include "tests/bench/attention_workload.h"
#include "tests/bench/fma_peak.h"
#include "tests/bench/stream_read.h"

namespace triad {
namespace {

constexpr double kBothCores = 1.9;

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Wall time of `work` on `threads` threads at once, the calling one among them. Each gets its index.
double SecondsOn(int threads, const std::function<void(int)>& work) {
  std::atomic<int> waiting{threads};
  const auto run = [&](int thread) {
    waiting.fetch_sub(1);
    while (waiting.load() > 0) {
    }
    work(thread);
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(run, thread);
  while (waiting.load() > 1) {
  }
  const double start = WallSeconds();
  run(0);
  for (std::thread& other : others) other.join();
  return WallSeconds() - start;
}

// How much faster two threads get through the FMA loop than one.
double FmaSpeedup() {
  const auto loop = [](int) { benchmark::DoNotOptimize(MeasureFmaPeak(/*pieces=*/1000)); };  // some 40 ms
  const double one = SecondsOn(1, loop);
  return 2 * one / SecondsOn(2, loop);
}

// How much faster two threads read the workload's keys and values than one.
double ReadSpeedup(const AttentionWorkload& workload) {
  const auto seconds = [&](int threads) {
    return SecondsOn(threads, [&](int thread) {
      for (const Tensor* tensor : {&workload.key(), &workload.value()}) {
        const int64_t bytes = tensor->byte_size() / threads;
        benchmark::DoNotOptimize(MeasureStreamRead(tensor->data() + thread * bytes, bytes, /*streams=*/1));
      }
    });
  };
  const double one = seconds(1);
  return one / seconds(2);
}

double KernelSeconds(const FusedAttention& kernel, AttentionWorkload& workload, int threads) {
  const std::vector<WorkItem> items = kernel.Plan(workload.problem());
  std::atomic<size_t> next{0};
  std::vector<Scratch> scratches(static_cast<size_t>(threads));
  return SecondsOn(threads, [&](int thread) {
    for (size_t i = next++; i < items.size(); i = next++) {
      const absl::Status status =
          kernel.Run(workload.problem(), items[i], workload.outputs(), scratches[static_cast<size_t>(thread)]);
      TRIAD_CHECK(status.ok(), "the kernel runs");
    }
  });
}

void RunThreadsRow(benchmark::State& state, const AttentionRow& row) {
  const FusedAttention kernel;
  AttentionWorkload workload(row);
  KernelSeconds(kernel, workload, /*threads=*/2);
  std::vector<double> ratios;
  int thrown_away = 0;
  for (auto _ : state) {
    const double before = FmaSpeedup();
    const double read_speedup = row.q_len == 1 ? ReadSpeedup(workload) : 0;
    const double one = KernelSeconds(kernel, workload, 1);
    const double two = KernelSeconds(kernel, workload, 2);
    const double after = FmaSpeedup();
    state.SetIterationTime(two);
    if (std::min(before, after) < kBothCores) {
      ++thrown_away;
    } else {
      ratios.push_back(one / two / (row.q_len == 1 ? read_speedup : std::max(before, after)));
    }
  }
  if (!workload.IsRight()) state.SkipWithError("the answer differs from the reference");
  state.counters["thrown_away"] = thrown_away;
  if (ratios.empty()) return;  // the second core was not there
  std::sort(ratios.begin(), ratios.end());
  state.counters["speedup_ratio_best"] = ratios.back();
  state.counters["speedup_ratio_median"] = ratios[ratios.size() / 2];
}

constexpr AttentionRow kThreadRows[] = {
    {.name = "F32_2048_HeadDim64"},
    {.name = "F32_128_HeadDim64_Batch8", .batch = 8, .q_len = 128, .kv_len = 128},
    {.name = "Decode_F32_65536_OneHead", .heads = 1, .kv_heads = 1, .q_len = 1, .kv_len = 65536},
};

}  // namespace

void RegisterThreadRows() {
  for (const AttentionRow& row : kThreadRows) {
    benchmark::RegisterBenchmark((std::string("BM_Threads2_") + row.name).c_str(),
                                 [&row](benchmark::State& state) { RunThreadsRow(state, row); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace triad
