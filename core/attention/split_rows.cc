#include "core/attention/split_rows.h"

namespace triad {

SplitRows::SplitRows(int64_t first_chunk, int64_t chunks, int64_t chunk_floats)
    : first_chunk_(first_chunk),
      chunks_(chunks),
      chunk_floats_(chunk_floats),
      results_(static_cast<size_t>(chunks * chunk_floats)),
      left_(chunks) {}

SplitRows::Outcome SplitRows::Arrive(bool counts) {
  if (!counts) all_count_.store(false, std::memory_order_relaxed);
  // Release what this chunk wrote; the last one acquires what all wrote.
  if (left_.fetch_sub(1, std::memory_order_acq_rel) > 1) return Outcome::kOthersAreLeft;
  left_.store(chunks_, std::memory_order_relaxed);
  return all_count_.exchange(true, std::memory_order_relaxed) ? Outcome::kAllCount : Outcome::kSomeDoNot;
}

}  // namespace triad
