// Whether the cores are there: on shared machines the second one comes and goes, and steal time does not show it.
#pragma once

namespace triad {

// How many times as much `threads` threads get done as one: a spin loop on one thread, then on all, 50 ms each. About
// `threads` on a machine with as many cores to give.
double ProbeCores(int threads = 2);

// What a probe must have found for the cores to count as there: 1.9 of 2.
constexpr double CoresNeeded(int threads) { return 0.95 * threads; }

}  // namespace triad
