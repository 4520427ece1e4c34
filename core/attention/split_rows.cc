#include "core/attention/split_rows.h"

namespace triad {

SplitRows::SplitRows(int64_t first_part, int64_t parts, int64_t part_keys)
    : first_part_(first_part), part_keys_(part_keys), results_(static_cast<size_t>(parts)), left_(parts) {}

float* SplitRows::NewResultOf(int64_t part, int64_t count) {
  std::unique_ptr<float[]>& result = results_[IndexOf(part)];
  result = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(count));
  return result.get();
}

SplitRows::Outcome SplitRows::Arrive(bool counts) {
  if (!counts) all_count_.store(false, std::memory_order_relaxed);
  // Release what this part wrote; the last one acquires what all wrote.
  if (left_.fetch_sub(1, std::memory_order_acq_rel) > 1) return Outcome::kOthersAreLeft;
  left_.store(static_cast<int64_t>(results_.size()), std::memory_order_relaxed);
  return all_count_.exchange(true, std::memory_order_relaxed) ? Outcome::kAllCount : Outcome::kSomeDoNot;
}

void SplitRows::DropResults() {
  for (std::unique_ptr<float[]>& result : results_) result.reset();
}

}  // namespace triad
