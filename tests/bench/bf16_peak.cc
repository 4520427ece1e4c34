#include "tests/bench/bf16_peak.h"

#include <cstdint>

#include "core/base/check.h"
#include "tests/bench/run_on_threads.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#endif

namespace triad {

#if defined(__x86_64__)
namespace {

// Twelve chains hide a latency of 6 on two units. Returns FLOP done.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) double RunBf16(int64_t rounds, float* result) {
  constexpr int kChains = 12;
  const __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.25f));
  const __m512bh b = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1.0f / 128), _mm512_set1_ps(*result));
  __m512 sums[kChains];
  for (int chain = 0; chain < kChains; ++chain) sums[chain] = _mm512_set1_ps(static_cast<float>(chain));
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, a, b);
  }
  __m512 total = sums[0];
  for (int chain = 1; chain < kChains; ++chain) total = _mm512_add_ps(total, sums[chain]);
  float lanes[16];
  _mm512_storeu_ps(lanes, total);
  for (const float lane : lanes) *result += lane;
  return static_cast<double>(rounds) * kChains * 16 * 2 * 2;  // lanes, pairs, multiply and add
}

}  // namespace

double MeasureBf16Peak(int pieces) {
  constexpr int64_t kRounds = 20000;  // some 40 us
  double best = 0;
  for (int piece = 0; piece < pieces; ++piece) {
    volatile float value = 1.0f / 64;
    float result = value;
    const double start = ThreadSeconds();
    const double flop = RunBf16(kRounds, &result);
    best = std::max(best, flop / (ThreadSeconds() - start));
    value = result;
  }
  return best;
}

#else

double MeasureBf16Peak(int) {
  TRIAD_CHECK(false, "nobody asks for the bf16 peak of a CPU without it");
  return 0;
}

#endif

}  // namespace triad
