#include "core/batching/scheduler.h"

#include <algorithm>
#include <new>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/start_thread.h"
#include "core/batching/admission_policy.h"
#include "core/batching/finish_estimate.h"
#include "core/batching/pace.h"
#include "core/batching/retry_hint.h"
#include "core/batching/run_item.h"
#include "core/batching/schedule_policy.h"
#include "core/batching/scheduler_entry.h"

namespace triad {
namespace {

using Entry = SchedulerEntry;
using Aftermath = SchedulerAftermath;

class RollingScheduler final : public Scheduler {
 public:
  RollingScheduler(const SchedulerOptions& options, Clock& clock, SchedulerObserver& observer)
      : options_(options), clock_(clock), observer_(observer), list_(BudgetOf(options)) {}
  ~RollingScheduler() override { Stop(); }

  // Once, before anything else. Throws std::system_error when the system has no thread left.
  void StartThreads();

  absl::StatusOr<TaskId> Submit(std::unique_ptr<Task>& task) override;
  void Cancel(TaskId id) override;
  void BeginDrain() override;
  bool WaitIdle(Time deadline) override;
  void Stop() override;
  SchedulerLoad load() const override;
  Duration retry_after() const override;

 private:
  void WorkerLoop();
  void TimerLoop();
  void RunInline(Entry& entry);
  void RunTaken(const TakenItem& taken, Time begin, Scratch& scratch, Aftermath& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Moves into the list what has room, and wakes a worker for each new item.
  void JoinList(Aftermath& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeFor(const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const int64_t wanted = std::min(idle_workers_, static_cast<int64_t>(entry.items.size()));
    for (int64_t i = 0; i < wanted; ++i) work_.Signal();
  }
  void SetLookAt(Entry& entry, Time look_at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends every task that is due at `now`.
  void Expire(Time now, Aftermath& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends `entry`, and drops the items it has left unless they compute others as well: now, or when the running ones
  // have returned. Nothing when it is ending already.
  void EndEarly(Entry& entry, absl::Status status, std::optional<Refusal> refusal, Aftermath& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends `entry` and its sharers, with `status`, once the running items have returned.
  void Fail(Entry& entry, const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Releases mu_ for the task's next stage, and lists it. Nothing is left to run afterwards when there is none.
  void ChangeStage(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends `entry` and its sharers if nothing of it runs or is left to run.
  void EndIfDone(Entry& entry, Aftermath& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Releases mu_, tells tasks and observer, takes it again, and takes the ended tasks off the bounds.
  void Settle(Aftermath& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FinishEntry(Entry& entry) ABSL_LOCKS_EXCLUDED(mu_);
  void Release(int64_t tasks, int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const SchedulerOptions options_;
  Clock& clock_;
  SchedulerObserver& observer_;

  mutable Mutex mu_;  // guards all below but what says otherwise
  RollingList list_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<TaskId, std::unique_ptr<Entry>> entries_ ABSL_GUARDED_BY(mu_);  // queued and listed
  std::set<std::pair<Time, TaskId>> expiries_ ABSL_GUARDED_BY(mu_);                  // when to look at which entry
  InFlight in_flight_ ABSL_GUARDED_BY(mu_);  // also inline tasks, and the ended until Finish has returned
  ServiceRate rate_ ABSL_GUARDED_BY(mu_){options_.threads};
  TaskId last_id_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_draining_ ABSL_GUARDED_BY(mu_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
  int64_t idle_workers_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t busy_workers_ ABSL_GUARDED_BY(mu_) = 0;           // at an item; those at neither look for one
  Time timer_wakes_at_ ABSL_GUARDED_BY(mu_) = Time::min();  // min while it is awake: it will look by itself
  CondVar work_;                                            // the list has items, or stopping
  CondVar timer_;                                           // something expires before timer_wakes_at_, or stopping
  CondVar idle_;                                            // nothing is in flight

  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mu_);
};

void RollingScheduler::StartThreads() {
  MutexLock lock(mu_);
  threads_.reserve(static_cast<size_t>(options_.threads) + 1);
  for (int i = 0; i < options_.threads; ++i) {
    threads_.push_back(StartThread(absl::StrCat("triad-compute-", i), options_.niceness, [this] { WorkerLoop(); }));
  }
  threads_.push_back(StartThread("triad-timer", /*niceness=*/0, [this] { TimerLoop(); }));
}

absl::StatusOr<TaskId> RollingScheduler::Submit(std::unique_ptr<Task>& task) {
  const TaskCost cost = task->cost();
  std::unique_ptr<Entry> entry;
  try {
    entry = MakeEntry(*task, clock_.Now());
  } catch (const std::bad_alloc&) {  // as many items as a client asked for
    return absl::ResourceExhaustedError("no memory to schedule the request");
  }
  AdmissionDecision decision;
  {
    MutexLock lock(mu_);
    decision = Admit(in_flight_, is_draining_, entry->bytes, entry->deadline, entry->times.accepted, options_);
    const bool runs_here = RunsHere(*entry, cost, {.tasks = in_flight_.tasks, .busy_threads = busy_workers_}, options_);
    if (decision.status.ok()) {
      decision = AdmitInTime(EstimateFinish(*entry, runs_here ? nullptr : &list_, rate_.pace()),
                             entry->deadline - entry->times.accepted);
    }
    if (decision.status.ok()) {
      ++in_flight_.tasks;
      in_flight_.bytes += entry->bytes;
      entry->task = std::move(task);
      if (!runs_here) {
        const TaskId id = entry->id = ++last_id_;
        Entry& accepted = *entry;
        entries_.emplace(id, std::move(entry));
        list_.Enqueue(accepted);
        Aftermath after;
        JoinList(after);
        if (accepted.place == ScheduledTask::Place::kQueue) {
          SetLookAt(accepted, NextLook(accepted.times.accepted, accepted.deadline, /*is_queued=*/true, options_));
        }
        Settle(after);
        return id;
      }
    }
  }
  if (!decision.status.ok()) {
    if (decision.refusal) observer_.OnRefused(*decision.refusal);
    return std::move(decision.status);
  }
  RunInline(*entry);
  return TaskId{0};
}

void RollingScheduler::RunInline(Entry& entry) {
  observer_.OnListed(/*tasks=*/1, entry.tokens);
  entry.times.started = clock_.Now();
  thread_local Scratch scratch;  // for as long as the submitter lives: those of a server are few, and do this again
  WholeRun run = RunWhole(*entry.task, std::move(entry.items), clock_, scratch);
  entry.times.finished = clock_.Now();
  entry.status = std::move(run.status);
  if (run.is_late) entry.SetEnd(EarlyEnd(Refusal::kDeadline, options_), Refusal::kDeadline);
  FinishEntry(entry);
  MutexLock lock(mu_);
  Release(/*tasks=*/1, entry.bytes);
}

void RollingScheduler::Cancel(TaskId id) {
  MutexLock lock(mu_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  Aftermath after;
  EndEarly(*found->second, EarlyEnd(Refusal::kCancelled, options_), Refusal::kCancelled, after);
  Settle(after);
}

void RollingScheduler::BeginDrain() {
  MutexLock lock(mu_);
  is_draining_ = true;
}

bool RollingScheduler::WaitIdle(Time deadline) {
  MutexLock lock(mu_);
  while (in_flight_.tasks > 0 && clock_.Now() < deadline) clock_.WaitUntil(idle_, mu_, deadline);
  return in_flight_.tasks == 0;
}

void RollingScheduler::Stop() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mu_);
    is_draining_ = true;
    is_stopping_ = true;
    Aftermath after;
    std::vector<TaskId> all;
    for (const auto& [id, entry] : entries_) all.push_back(id);
    for (const TaskId id : all) {
      const auto found = entries_.find(id);
      if (found == entries_.end()) continue;  // ended with another
      EndEarly(*found->second, EarlyEnd(Refusal::kDraining, options_), Refusal::kDraining, after);
    }
    work_.SignalAll();
    timer_.SignalAll();
    Settle(after);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  WaitIdle(kNever);  // inline tasks, and those that Cancel is finishing
}

SchedulerLoad RollingScheduler::load() const {
  MutexLock lock(mu_);
  return {
      .queued_tasks = list_.queued_tasks(), .listed_tasks = list_.listed_tasks(), .in_flight_bytes = in_flight_.bytes};
}

Duration RollingScheduler::retry_after() const {
  MutexLock lock(mu_);
  return RetryAfter(list_.waiting_flop(), rate_.pace(), {.longest = options_.max_queue_time});
}

void RollingScheduler::WorkerLoop() {
  Scratch scratch;
  Aftermath after;
  MutexLock lock(mu_);
  for (;;) {
    const Time now = clock_.Now();
    Expire(now, after);
    if (!after.empty()) {
      Settle(after);
    } else if (const std::optional<TakenItem> taken = list_.TakeNext(now, rate_.pace())) {
      RunTaken(*taken, now, scratch, after);
    } else if (is_stopping_) {
      return;
    } else {
      ++idle_workers_;
      work_.Wait(mu_);
      --idle_workers_;
    }
  }
}

void RollingScheduler::RunTaken(const TakenItem& taken, Time begin, Scratch& scratch, Aftermath& after) {
  Entry& entry = static_cast<Entry&>(*taken.task);
  ++entry.running_items;  // keeps the entry alive while mu_ is released
  std::vector<Task*> shared;
  for (ScheduledTask* task : taken.sharers) {
    Entry& sharer = static_cast<Entry&>(*task);
    sharer.leader = &entry;
    entry.sharers.push_back(&sharer);
    shared.push_back(sharer.task.get());
  }
  if (!entry.is_started) entry.times.started = begin;
  entry.is_started = true;
  ++busy_workers_;
  mu_.Unlock();
  if (!shared.empty()) entry.task->Share(shared);
  absl::Status status = RunItemCatching(*entry.task, taken.item.item, scratch);
  const Time end = clock_.Now();
  mu_.Lock();
  --busy_workers_;
  if (entry.is_paced) rate_.Add(taken.item.flop, end - begin);
  entry.times.finished = std::max(entry.times.finished, end);
  Expire(end, after);  // before the item counts as done: a task whose last item ends after its deadline is late
  if (!status.ok()) Fail(entry, status);
  if (entry.running_items == 1 && !entry.has_items_left() && !entry.is_abandoned()) ChangeStage(entry);
  --entry.running_items;
  EndIfDone(entry, after);
}

void RollingScheduler::ChangeStage(Entry& entry) {
  mu_.Unlock();
  absl::StatusOr<std::vector<ScheduledItem>> items = NextStageOf(*entry.task);
  mu_.Lock();
  if (!items.ok()) return Fail(entry, items.status());
  if (items->empty() || entry.is_abandoned()) return;
  list_.BeginStage(entry, *std::move(items));
  WakeFor(entry);
}

void RollingScheduler::TimerLoop() {
  Aftermath after;
  MutexLock lock(mu_);
  while (!is_stopping_) {
    Expire(clock_.Now(), after);
    if (!after.empty()) {
      Settle(after);
    } else {
      timer_wakes_at_ = expiries_.empty() ? kNever : expiries_.begin()->first;
      clock_.WaitUntil(timer_, mu_, timer_wakes_at_);
      timer_wakes_at_ = Time::min();
    }
  }
}

void RollingScheduler::JoinList(Aftermath& after) {
  while (ScheduledTask* task = is_stopping_ ? nullptr : list_.JoinNext()) {
    Entry& entry = static_cast<Entry&>(*task);
    SetLookAt(entry, NextLook(entry.times.accepted, entry.deadline, /*is_queued=*/false, options_));
    after.listed.push_back({.tasks = list_.listed_tasks(), .tokens = list_.listed_tokens()});
    WakeFor(entry);
  }
}

void RollingScheduler::SetLookAt(Entry& entry, Time look_at) {
  if (entry.look_at != kNever) expiries_.erase({entry.look_at, entry.id});
  entry.look_at = look_at;
  if (look_at == kNever) return;
  expiries_.insert({look_at, entry.id});
  if (look_at < timer_wakes_at_) timer_.Signal();
}

void RollingScheduler::Expire(Time now, Aftermath& after) {
  while (!expiries_.empty() && expiries_.begin()->first <= now) {
    Entry& entry = *entries_.at(expiries_.begin()->second);
    const Refusal reason = ExpiryReason(entry.deadline, now);
    EndEarly(entry, EarlyEnd(reason, options_), reason, after);
  }
}

void RollingScheduler::EndEarly(Entry& entry, absl::Status status, std::optional<Refusal> refusal, Aftermath& after) {
  if (entry.is_ending) return;
  entry.SetEnd(std::move(status), refusal);
  SetLookAt(entry, kNever);
  Entry& computing = entry.computed_by();
  if (computing.is_abandoned()) list_.DropItems(computing);
  EndIfDone(computing, after);
}

void RollingScheduler::Fail(Entry& entry, const absl::Status& status) {
  for (Entry* member : entry.group()) {
    if (member->is_ending) continue;
    // Each a status of its own: they end on different threads (mutex.h says why that matters).
    member->SetEnd(absl::Status(status.code(), status.message()), /*end_refusal=*/std::nullopt);
    SetLookAt(*member, kNever);
  }
  list_.DropItems(entry);
}

void RollingScheduler::EndIfDone(Entry& entry, Aftermath& after) {
  if (entry.running_items > 0 || entry.has_items_left()) return;
  if (!entry.is_started) entry.times.started = entry.times.finished = clock_.Now();
  for (Entry* member : entry.group()) {
    SetLookAt(*member, kNever);
    list_.Leave(*member);
    member->times.started = entry.times.started;
    member->times.finished = entry.times.finished;
    const auto found = entries_.find(member->id);
    after.ended.push_back(std::move(found->second));
    entries_.erase(found);
  }
  JoinList(after);
}

void RollingScheduler::Settle(Aftermath& after) {
  if (after.empty()) return;
  mu_.Unlock();
  for (const Aftermath::Listed& listed : after.listed) observer_.OnListed(listed.tasks, listed.tokens);
  const auto tasks = static_cast<int64_t>(after.ended.size());
  int64_t bytes = 0;
  for (const std::unique_ptr<Entry>& entry : after.ended) {
    FinishEntry(*entry);
    bytes += entry->bytes;
  }
  after.Clear();
  mu_.Lock();
  Release(tasks, bytes);
}

void RollingScheduler::FinishEntry(Entry& entry) {
  if (entry.refusal) observer_.OnRefused(*entry.refusal);
  entry.task->Finish(std::move(entry.status), entry.times);
  entry.task.reset();
}

void RollingScheduler::Release(int64_t tasks, int64_t bytes) {
  in_flight_.tasks -= tasks;
  in_flight_.bytes -= bytes;
  if (in_flight_.tasks == 0) idle_.SignalAll();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Create(const SchedulerOptions& options, Clock& clock,
                                                             SchedulerObserver* observer) {
  static SchedulerObserver nobody;  // ignores everything
  if (absl::Status status = Validate(options); !status.ok()) return status;
  auto scheduler = std::make_unique<RollingScheduler>(options, clock, observer == nullptr ? nobody : *observer);
  try {
    scheduler->StartThreads();
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot start ", options.threads, " threads: ", error.what()));
  }
  return std::unique_ptr<Scheduler>(std::move(scheduler));
}

}  // namespace triad
