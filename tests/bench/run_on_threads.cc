#include "tests/bench/run_on_threads.h"

#include <time.h>

#include <atomic>
#include <thread>
#include <vector>

namespace triad {
namespace {

double SecondsOf(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

double ThreadSeconds() { return SecondsOf(CLOCK_THREAD_CPUTIME_ID); }

double RunOnThreads(int threads, const std::function<void(int)>& work) {
  if (threads == 1) {
    const double start = ThreadSeconds();
    work(0);
    return ThreadSeconds() - start;
  }
  std::atomic<int> missing{threads};
  const auto run = [&](int thread) {
    missing.fetch_sub(1);
    while (missing.load() > 0) {
    }
    work(thread);
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(run, thread);
  while (missing.load() > 1) {
  }
  const double start = SecondsOf(CLOCK_MONOTONIC);
  run(0);
  for (std::thread& other : others) other.join();
  return SecondsOf(CLOCK_MONOTONIC) - start;
}

}  // namespace triad
