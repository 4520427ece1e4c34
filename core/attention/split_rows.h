// Rows whose keys are computed in chunks, each a work item of its own: what the chunks leave for the last of them to
// merge. Chunks lie at fixed keys and merge in their order, so no byte depends on who computes which, nor when.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace triad {

// Thread-safe as said. All chunks together may be computed again and again, but not at once.
class SplitRows {
 public:
  // Of chunks [first_chunk, first_chunk + chunks).
  SplitRows(int64_t first_chunk, int64_t chunks);

  int64_t first_chunk() const { return first_chunk_; }
  int64_t end_chunk() const { return first_chunk_ + static_cast<int64_t>(results_.size()); }

  // `count` numbers that whoever computes `chunk` writes before it says so. Throws std::bad_alloc.
  float* NewResultOf(int64_t chunk, int64_t count);

  // Says that a chunk has been computed, to a result that counts or not. For the last of them: whether all count.
  enum class Outcome { kOthersAreLeft, kAllCount, kSomeDoNot };
  Outcome Arrive(bool counts);

  // For the last: what `chunk` left; then that it has been read.
  const float* ResultOf(int64_t chunk) const { return results_[IndexOf(chunk)].get(); }
  void DropResults();

 private:
  size_t IndexOf(int64_t chunk) const { return static_cast<size_t>(chunk - first_chunk_); }

  const int64_t first_chunk_;
  std::vector<std::unique_ptr<float[]>> results_;  // of each chunk; there from its computing to the merge
  std::atomic<int64_t> left_;                      // chunks that have not arrived
  std::atomic<bool> all_count_ = true;             // of those that have
};

}  // namespace triad
