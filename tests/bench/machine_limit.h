// What the machine itself can do, by all threads of a row at once: what a row's figure is divided by.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace triad {

struct MachineLimit {
  std::string unit;                // of work: "flop", "bytes"
  std::vector<std::string> names;  // of what `measure` returns
  // units/s, where the row has `done` such a part of its items, from 0 to 1; takes less time than a piece.
  std::function<std::vector<double>(double done)> measure;
  double piece_work = 0;  // a few ms of work
  // Which of the two beside a piece counts. Of the peak the larger: others can only spoil it. Of memory the mean: it is
  // what others leave of it, for the piece too, and the larger of two is more than that.
  bool larger_counts = false;
};

// "peak": the loop of fma_peak.h, 0.2 ms of it.
MachineLimit FmaLimit(int threads);

// "bf16_peak", likewise, of a CPU that multiplies bf16.
MachineLimit Bf16Limit(int threads);

// "stream": one plain sequential read for each thread; "best_stream": the best of 1, 2, 4 and 8 parallel ones. Of what
// the row reads, half of it away from where the row is: other memory may be faster or slower by a third, as its pages
// lie, and what has just been read is in a cache. Borrows the bytes.
using ReadMemory = std::vector<absl::Span<const std::byte>>;
MachineLimit StreamLimit(int threads, const ReadMemory& memory);

}  // namespace triad
