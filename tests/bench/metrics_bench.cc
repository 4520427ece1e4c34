// What counting costs: each of the calls that a request makes, one or two threads at a time. The bar is 1 us a call.
#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>

#include "core/base/clock.h"
#include "core/batching/scheduler.h"
#include "server/in_flight_ledger.h"
#include "server/layer_store.h"
#include "server/metrics.h"

namespace triad {
namespace {

// Those of a server that serves: before they watch its load they do not count what the scheduler reports.
struct WatchingMetrics {
  WatchingMetrics() { metrics->WatchLoad(*scheduler, ledger, layers); }

  const std::unique_ptr<Metrics> metrics = *Metrics::Create({});
  const InFlightLedger ledger{LedgerLimits{}};
  const LayerStore layers;
  const std::unique_ptr<Scheduler> scheduler =
      *Scheduler::Create({.threads = 1}, RealClock(), /*observer=*/metrics.get());
};

// Shared by a bench's threads, as by the server's.
Metrics& SharedMetrics() {
  static const WatchingMetrics watching;
  return *watching.metrics;
}

void BM_Metrics_Answered(benchmark::State& state) {
  Metrics& metrics = SharedMetrics();
  const AnsweredRequest request{.total = std::chrono::microseconds(300), .request_bytes = 98304, .reply_bytes = 32768};
  for (auto _ : state) metrics.OnAnswered(request);
}

void BM_Metrics_Computed(benchmark::State& state) {
  Metrics& metrics = SharedMetrics();
  const ComputedRequest request{.queue = std::chrono::microseconds(2),
                                .compute = std::chrono::microseconds(50),
                                .flop_executed = 1e6,
                                .flop_needed = 1e6,
                                .batch_requests = 4,
                                .batch_tokens = 64};
  for (auto _ : state) metrics.OnComputed(request);
}

void BM_Metrics_Listed(benchmark::State& state) {
  Metrics& metrics = SharedMetrics();
  for (auto _ : state) metrics.OnListed(/*tasks=*/4, /*tokens=*/64);
}

void BM_Metrics_Replied(benchmark::State& state) {
  Metrics& metrics = SharedMetrics();
  for (auto _ : state) metrics.OnReplied(std::chrono::microseconds(100));
}

void BM_Metrics_Refused(benchmark::State& state) {
  Metrics& metrics = SharedMetrics();
  for (auto _ : state) metrics.OnRefused(Refusal::kBytes);
}

BENCHMARK(BM_Metrics_Answered)->ThreadRange(1, 2);
BENCHMARK(BM_Metrics_Computed)->ThreadRange(1, 2);
BENCHMARK(BM_Metrics_Listed)->ThreadRange(1, 2);
BENCHMARK(BM_Metrics_Replied)->ThreadRange(1, 2);
BENCHMARK(BM_Metrics_Refused)->ThreadRange(1, 2);

}  // namespace
}  // namespace triad

BENCHMARK_MAIN();
