#include "tests/bench/fma_peak.h"

#include <algorithm>
#include <cstdint>

#include "tests/bench/run_on_threads.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/fma_peak.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace triad {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve chains of latency 4 keep two FMA units busy. Returns FLOP done.
double RunFma(int64_t rounds, float* result) {
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, 0.999f);
  const auto b = hn::Set(d, 0.001f);
  // All different, or the compiler computes equal chains once.
  const auto start = [&](int chain) HWY_ATTR { return hn::Set(d, *result + static_cast<float>(chain)); };
  auto x0 = start(0), x1 = start(1), x2 = start(2), x3 = start(3), x4 = start(4), x5 = start(5);
  auto x6 = start(6), x7 = start(7), x8 = start(8), x9 = start(9), x10 = start(10), x11 = start(11);
  for (int64_t round = 0; round < rounds; ++round) {
    x0 = hn::MulAdd(x0, a, b);
    x1 = hn::MulAdd(x1, a, b);
    x2 = hn::MulAdd(x2, a, b);
    x3 = hn::MulAdd(x3, a, b);
    x4 = hn::MulAdd(x4, a, b);
    x5 = hn::MulAdd(x5, a, b);
    x6 = hn::MulAdd(x6, a, b);
    x7 = hn::MulAdd(x7, a, b);
    x8 = hn::MulAdd(x8, a, b);
    x9 = hn::MulAdd(x9, a, b);
    x10 = hn::MulAdd(x10, a, b);
    x11 = hn::MulAdd(x11, a, b);
  }
  const auto even = hn::Add(hn::Add(hn::Add(x0, x2), hn::Add(x4, x6)), hn::Add(x8, x10));
  const auto odd = hn::Add(hn::Add(hn::Add(x1, x3), hn::Add(x5, x7)), hn::Add(x9, x11));
  *result = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  return static_cast<double>(rounds) * 12 * 2 * static_cast<double>(hn::Lanes(d));
}

}  // namespace HWY_NAMESPACE
}  // namespace triad
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace triad {

HWY_EXPORT(RunFma);

double MeasureFmaPeak(int pieces) {
  constexpr int64_t kRounds = 20000;  // some 40 us
  volatile float value = 1;
  double best = 0;
  for (int piece = 0; piece < pieces; ++piece) {
    float result = value;
    const double start = ThreadSeconds();
    const double flop = HWY_DYNAMIC_DISPATCH(RunFma)(kRounds, &result);
    best = std::max(best, flop / (ThreadSeconds() - start));
    value = result;
  }
  return best;
}

}  // namespace triad
#endif  // HWY_ONCE
