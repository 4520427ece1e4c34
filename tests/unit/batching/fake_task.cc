#include "tests/unit/batching/fake_task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/check.h"

namespace triad {
namespace {

class FakeTask final : public Task {
 public:
  FakeTask(FakeTaskSpec spec, Ending& ending) : spec_(std::move(spec)), ending_(ending) {}

  TaskCost cost() const override {
    double flop = std::accumulate(spec_.item_flop.begin(), spec_.item_flop.end(), 0.0);
    for (const std::vector<double>& stage : spec_.later_stages)
      flop = std::accumulate(stage.begin(), stage.end(), flop);
    return {.tokens = spec_.tokens, .bytes = spec_.bytes, .flop = flop, .may_run_inline = spec_.may_run_inline};
  }
  Priority priority() const override { return spec_.priority; }
  Time deadline() const override { return spec_.deadline; }
  int64_t item_count() const override { return static_cast<int64_t>(items().size()); }
  double item_flop(int64_t item) const override { return items()[static_cast<size_t>(item)]; }
  absl::Status RunItem(int64_t item, Scratch& scratch) override {
    *scratch.Allocate<int64_t>(1) = item;  // two threads on one scratch would be a race
    return spec_.run(first_item_ + item);
  }
  bool NextStage() override {
    if (stage_ == spec_.later_stages.size()) return false;
    first_item_ += item_count();
    ++stage_;
    return true;
  }
  const void* share_key() const override { return spec_.share_key; }
  void Share(absl::Span<Task* const> others) override {
    int64_t tokens = 0;
    for (const Task* other : others) tokens += other->cost().tokens;
    spec_.on_share(tokens);
  }
  void Finish(absl::Status status, const TaskTimes& times) override { ending_.Record(std::move(status), times); }

 private:
  const std::vector<double>& items() const { return stage_ == 0 ? spec_.item_flop : spec_.later_stages[stage_ - 1]; }

  const FakeTaskSpec spec_;
  Ending& ending_;
  size_t stage_ = 0;        // 0: item_flop, then later_stages
  int64_t first_item_ = 0;  // of the stage
};

}  // namespace

void Event::Set() {
  MutexLock lock(mu_);
  is_set_ = true;
  cv_.SignalAll();
}

void Event::Wait() {
  MutexLock lock(mu_);
  while (!is_set_) cv_.Wait(mu_);
}

bool Event::is_set() const {
  MutexLock lock(mu_);
  return is_set_;
}

void Ending::Record(absl::Status status, const TaskTimes& times) {
  {
    MutexLock lock(mu_);
    code_ = status.code();
    message_ = std::string(status.message());
    times_ = times;
    ++finish_calls_;
  }
  finished_.Set();
}

absl::StatusCode Ending::Wait() {
  finished_.Wait();
  MutexLock lock(mu_);
  return code_;
}

std::string Ending::Message() {
  finished_.Wait();
  MutexLock lock(mu_);
  return message_;
}

TaskTimes Ending::times() {
  finished_.Wait();
  MutexLock lock(mu_);
  return times_;
}

int Ending::finish_calls() const {
  MutexLock lock(mu_);
  return finish_calls_;
}

void Journal::Write(std::string line) {
  MutexLock lock(mu_);
  lines_.push_back(std::move(line));
}

std::vector<std::string> Journal::lines() const {
  MutexLock lock(mu_);
  return lines_;
}

std::unique_ptr<Task> MakeFakeTask(FakeTaskSpec spec, Ending& ending) {
  return std::make_unique<FakeTask>(std::move(spec), ending);
}

std::unique_ptr<Task> Blocker::MakeTask(FakeTaskSpec spec) {
  spec.run = [this, inner = std::move(spec.run)](int64_t item) {
    if (item == 0) {
      running_.Set();
      released_.Wait();
    }
    return inner(item);
  };
  return MakeFakeTask(std::move(spec), ending_);
}

void FakeObserver::OnListed(int64_t tasks, int64_t tokens) {
  MutexLock lock(mu_);
  most_listed_tasks_ = std::max(most_listed_tasks_, tasks);
  most_listed_tokens_ = std::max(most_listed_tokens_, tokens);
}

void FakeObserver::OnRefused(Refusal reason) {
  MutexLock lock(mu_);
  refusals_.push_back(reason);
}

std::vector<Refusal> FakeObserver::refusals() const {
  MutexLock lock(mu_);
  return refusals_;
}

int64_t FakeObserver::most_listed_tasks() const {
  MutexLock lock(mu_);
  return most_listed_tasks_;
}

int64_t FakeObserver::most_listed_tokens() const {
  MutexLock lock(mu_);
  return most_listed_tokens_;
}

SchedulerHarness::SchedulerHarness(const SchedulerOptions& options) {
  absl::StatusOr<std::unique_ptr<Scheduler>> created = Scheduler::Create(options, clock, &observer);
  TRIAD_CHECK(created.ok(), "the test's options are in range");
  scheduler = *std::move(created);
}

TaskId SchedulerHarness::Submit(std::unique_ptr<Task> task) {
  absl::StatusOr<TaskId> id = scheduler->Submit(task);
  EXPECT_TRUE(id.ok()) << id.status();
  return id.value_or(0);
}

}  // namespace triad
