#include "tests/support/server_gate_kernel.h"

#include <utility>

namespace triad {
namespace {

class GateKernel final : public AttentionKernel {
 public:
  explicit GateKernel(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}

  absl::string_view name() const override { return "gate"; }
  std::vector<WorkItem> Plan(const AttentionProblem& problem) const override { return reference_.Plan(problem); }
  absl::Status Run(const AttentionProblem& problem, const WorkItem& item, const AttentionOutputs& outputs,
                   Scratch& scratch) const override {
    gate_->Pass();
    return reference_.Run(problem, item, outputs, scratch);
  }

 private:
  const std::shared_ptr<Gate> gate_;  // shared with the test
  const ReferenceAttention reference_;
};

}  // namespace

void Gate::Close() {
  MutexLock lock(mu_);
  is_open_ = false;
  arrivals_ = 0;
}

void Gate::Open() {
  MutexLock lock(mu_);
  is_open_ = true;
  changed_.SignalAll();
}

void Gate::AwaitArrivals(int64_t count) {
  MutexLock lock(mu_);
  while (arrivals_ < count) changed_.Wait(mu_);
}

void Gate::Pass() {
  MutexLock lock(mu_);
  ++arrivals_;
  changed_.SignalAll();
  while (!is_open_) changed_.Wait(mu_);
}

std::unique_ptr<AttentionKernel> MakeGateKernel(std::shared_ptr<Gate> gate) {
  return std::make_unique<GateKernel>(std::move(gate));
}

}  // namespace triad
