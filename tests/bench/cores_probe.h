// Whether both cores are there: on shared machines the second one comes and goes, and steal time does not show it.
#pragma once

namespace triad {

// How many times as much two threads get done as one: a spin loop on one thread, then on two, 50 ms each. About 2 on a
// machine with two cores to give; 1.9 is taken as both.
double ProbeCores();
constexpr double kBothCores = 1.9;

}  // namespace triad
