// Tasks whose course a test decides, and what it needs to watch them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/base/mutex.h"
#include "core/batching/scheduler.h"
#include "tests/support/fake_clock.h"

namespace triad {

// Happens once; whoever waits for it goes on from then.
class Event {
 public:
  void Set();
  void Wait();
  bool is_set() const;

 private:
  mutable Mutex mu_;
  bool is_set_ ABSL_GUARDED_BY(mu_) = false;
  CondVar cv_;
};

// How a task ended. Outlives the scheduler.
class Ending {
 public:
  void Record(absl::Status status, const TaskTimes& times);

  // Waits for the first Finish.
  absl::StatusCode Wait();
  std::string Message();
  TaskTimes times();
  int finish_calls() const;

 private:
  Event finished_;
  mutable Mutex mu_;
  absl::StatusCode code_ ABSL_GUARDED_BY(mu_) = absl::StatusCode::kOk;
  std::string message_ ABSL_GUARDED_BY(mu_);
  TaskTimes times_ ABSL_GUARDED_BY(mu_) = {};
  int finish_calls_ ABSL_GUARDED_BY(mu_) = 0;
};

// Lines in the order in which they were written.
class Journal {
 public:
  void Write(std::string line);
  std::vector<std::string> lines() const;

 private:
  mutable Mutex mu_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mu_);
};

struct FakeTaskSpec {
  int64_t tokens = 1;
  int64_t bytes = 1;
  bool may_run_inline = true;
  Priority priority = Priority::kNormal;
  Time deadline = kNever;
  std::vector<double> item_flop = {1};
  std::vector<std::vector<double>>
      later_stages;  // their items' flop; run() is told items counted on from the first stage's
  std::function<absl::Status(int64_t item)> run = [](int64_t) { return absl::OkStatus(); };
  const void* share_key = nullptr;
  std::function<void(int64_t tokens)> on_share = [](int64_t) {};  // told the tokens of the others
};

// Does what `spec` says; its end goes to `ending`, which outlives it.
std::unique_ptr<Task> MakeFakeTask(FakeTaskSpec spec, Ending& ending);

// A task of one item that runs until Release, so that a worker is busy. Outlives the scheduler.
class Blocker {
 public:
  // As a FakeTaskSpec of `spec`, blocking in item 0.
  std::unique_ptr<Task> MakeTask(FakeTaskSpec spec = {});
  void AwaitRunning() { running_.Wait(); }
  void Release() { released_.Set(); }
  Ending& ending() { return ending_; }

 private:
  Event running_;
  Event released_;
  Ending ending_;
};

// Counts what it is told.
class FakeObserver final : public SchedulerObserver {
 public:
  void OnListed(int64_t tasks, int64_t tokens) override;
  void OnRefused(Refusal reason) override;

  std::vector<Refusal> refusals() const;
  int64_t most_listed_tasks() const;
  int64_t most_listed_tokens() const;

 private:
  mutable Mutex mu_;
  std::vector<Refusal> refusals_ ABSL_GUARDED_BY(mu_);
  int64_t most_listed_tasks_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t most_listed_tokens_ ABSL_GUARDED_BY(mu_) = 0;
};

// A scheduler of `options` on a clock that stands still.
struct SchedulerHarness {
  explicit SchedulerHarness(const SchedulerOptions& options);

  // Submits what must be accepted. Returns its id.
  TaskId Submit(std::unique_ptr<Task> task);

  FakeClock clock;
  FakeObserver observer;
  std::unique_ptr<Scheduler> scheduler;  // last: gone before what it uses
};

}  // namespace triad
