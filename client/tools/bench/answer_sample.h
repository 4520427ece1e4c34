// A few answers of a run, kept to be checked after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "client/tools/bench/workload.h"
#include "core/base/mutex.h"
#include "core/base/random.h"
#include "triad/tensor.h"

namespace triad::tools {

struct SampledAnswer {
  PlannedRequest request = {};
  size_t target = 0;  // index of the server that gave it
  client::Tensor output = {};
  int64_t layer_version = 0;
};

// Every answer of the run has the same chance to be among those kept (Vitter 1985, algorithm R). Thread-safe.
class AnswerSample {
 public:
  // Keeps at most `size` answers: memory is theirs.
  AnswerSample(int64_t size, uint64_t seed) : size_(size), random_(seed) {}

  void Offer(SampledAnswer answer) ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    ++offered_;
    if (static_cast<int64_t>(kept_.size()) < size_) {
      kept_.push_back(std::move(answer));
    } else if (const int64_t place = random_.Below(offered_); place < size_) {
      kept_[static_cast<size_t>(place)] = std::move(answer);
    }
  }

  // Gives the answers away.
  std::vector<SampledAnswer> Take() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    return std::exchange(kept_, {});
  }

 private:
  const int64_t size_;
  Mutex mu_;
  Random random_ ABSL_GUARDED_BY(mu_);
  int64_t offered_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<SampledAnswer> kept_ ABSL_GUARDED_BY(mu_);
};

}  // namespace triad::tools
