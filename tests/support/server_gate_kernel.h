// A kernel that a test holds up: the reference kernel behind a gate.
#pragma once

#include <memory>

#include "core/attention/reference_attention.h"
#include "core/base/mutex.h"

namespace triad {

// Thread-safe. Open at first.
class Gate {
 public:
  void Close();
  void Open();
  // Blocks until `count` work items have come to the gate since Close.
  void AwaitArrivals(int64_t count);
  // For the kernel: counts an arrival, and blocks while the gate is closed.
  void Pass();

 private:
  Mutex mu_;  // guards all below
  CondVar changed_;
  bool is_open_ ABSL_GUARDED_BY(mu_) = true;
  int64_t arrivals_ ABSL_GUARDED_BY(mu_) = 0;
};

// Answers as ReferenceAttention does, one item per query, each after passing `gate`.
std::unique_ptr<AttentionKernel> MakeGateKernel(std::shared_ptr<Gate> gate);

}  // namespace triad
