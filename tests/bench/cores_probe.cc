#include "tests/bench/cores_probe.h"

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace triad {
namespace {

// Rounds of a loop that no compiler can shorten, until `end`.
int64_t Spin(std::chrono::steady_clock::time_point end) {
  int64_t rounds = 0;
  volatile uint64_t state = 1;
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 1000; ++i) state = state * 6364136223846793005 + 1442695040888963407;
    ++rounds;
  }
  return rounds;
}

double RoundsOf(int threads) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  std::vector<int64_t> rounds(static_cast<size_t>(threads));
  std::vector<std::thread> running;
  for (int64_t& count : rounds) running.emplace_back([&count, end] { count = Spin(end); });
  for (std::thread& thread : running) thread.join();
  int64_t sum = 0;
  for (const int64_t count : rounds) sum += count;
  return static_cast<double>(sum);
}

}  // namespace

double ProbeCores(int threads) {
  const double one = RoundsOf(1);
  return RoundsOf(threads) / one;
}

}  // namespace triad
