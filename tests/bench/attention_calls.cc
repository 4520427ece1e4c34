#include "tests/bench/attention_calls.h"

#include <cstddef>

#include "core/base/check.h"

namespace triad {

AttentionCalls::AttentionCalls(const AttentionKernel& kernel, AttentionWorkload& workload, int threads)
    : kernel_(kernel), workload_(workload), scratches_(static_cast<size_t>(threads)) {
  const std::vector<WorkItem> items = kernel_.Plan(workload_.problem());
  for (size_t i = 0; i < items.size(); ++i) RunItem(items[i], static_cast<int>(i % scratches_.size()));
}

void AttentionCalls::Measure(double work, RowMeter& meter) {
  std::vector<WorkItem> items;
  meter.Run({0.0}, [&](size_t, int) { items = kernel_.Plan(workload_.problem()); });
  double flop = 0;
  for (const WorkItem& item : items) flop += item.flop;
  std::vector<double> work_of_items;
  work_of_items.reserve(items.size());
  for (const WorkItem& item : items) work_of_items.push_back(work * item.flop / flop);
  meter.Run(work_of_items, [&](size_t item, int thread) { RunItem(items[item], thread); });
  meter.EndCall();
}

void AttentionCalls::RunItem(const WorkItem& item, int thread) {
  Scratch& scratch = scratches_[static_cast<size_t>(thread)];
  TRIAD_CHECK(kernel_.Run(workload_.problem(), item, workload_.outputs(), scratch).ok(), "the kernel runs");
}

}  // namespace triad
