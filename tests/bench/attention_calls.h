// Calls of a kernel for a row's request: planning, and every item of the plan.
#pragma once

#include <vector>

#include "core/attention/attention_kernel.h"
#include "core/base/scratch.h"
#include "tests/bench/attention_workload.h"
#include "tests/bench/row_meter.h"

namespace triad {

class AttentionCalls {
 public:
  // Borrows both. Makes one call that nobody measures.
  AttentionCalls(const AttentionKernel& kernel, AttentionWorkload& workload, int threads);

  // One call, measured. work: of all of it, in the unit of the meter's limit.
  void Measure(double work, RowMeter& meter);

 private:
  void RunItem(const WorkItem& item, int thread);

  const AttentionKernel& kernel_;
  AttentionWorkload& workload_;
  std::vector<Scratch> scratches_;  // of each thread
};

}  // namespace triad
