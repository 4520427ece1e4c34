// What the machine itself can do, by all threads of a row at once: what a row's figure is divided by.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace triad {

struct MachineLimit {
  std::string unit;                              // of work: "flop", "bytes"
  std::vector<std::string> names;                // of what `measure` returns
  std::function<std::vector<double>()> measure;  // units/s; takes less time than a piece
  double piece_work = 0;                         // a few ms of work
  // Which of the two beside a piece counts. Of the peak the larger: others can only spoil it. Of memory the mean: it is
  // what others leave of it, for the piece too, and the larger of two is more than that.
  bool larger_counts = false;
};

// "peak": the loop of fma_peak.h, 0.2 ms of it.
MachineLimit FmaLimit(int threads);

// "bf16_peak", likewise, of a CPU that multiplies bf16.
MachineLimit Bf16Limit(int threads);

// "stream": one plain sequential read for each thread; "best_stream": the best of 1, 2, 4 and 8 parallel ones. Of
// `bytes`, as many as the row reads: a buffer of its own, walked through 8 MiB at a time, so that caches hold of it
// what they hold of the row's.
MachineLimit StreamLimit(int threads, int64_t bytes);

}  // namespace triad
