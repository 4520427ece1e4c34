// Rows whose keys are computed in parts, each a work item of its own: what the parts leave for the last of them to
// merge. Parts lie at fixed keys and merge in their order, so no byte depends on who computes which, nor when.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/attention/attention_problem.h"

namespace triad {

// Thread-safe as said. All parts together may be computed again and again, but not at once.
class SplitRows {
 public:
  // Of parts [first_part, first_part + parts), each of `part_keys` keys.
  SplitRows(int64_t first_part, int64_t parts, int64_t part_keys);

  int64_t first_part() const { return first_part_; }
  int64_t end_part() const { return first_part_ + static_cast<int64_t>(results_.size()); }
  KeyRange KeysOf(int64_t part) const { return {.begin = part * part_keys_, .end = (part + 1) * part_keys_}; }

  // `count` numbers that whoever computes `part` writes before it says so. Throws std::bad_alloc.
  float* NewResultOf(int64_t part, int64_t count);

  // Says that a part has been computed, to a result that counts or not. For the last of them: whether all count.
  enum class Outcome { kOthersAreLeft, kAllCount, kSomeDoNot };
  Outcome Arrive(bool counts);

  // For the last: what `part` left; then that it has been read.
  const float* ResultOf(int64_t part) const { return results_[IndexOf(part)].get(); }
  void DropResults();

 private:
  size_t IndexOf(int64_t part) const { return static_cast<size_t>(part - first_part_); }

  const int64_t first_part_;
  const int64_t part_keys_;
  std::vector<std::unique_ptr<float[]>> results_;  // of each part; there from its computing to the merge
  std::atomic<int64_t> left_;                      // parts that have not arrived
  std::atomic<bool> all_count_ = true;             // of those that have
};

}  // namespace triad
