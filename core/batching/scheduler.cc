#include "core/batching/scheduler.h"

#include <pthread.h>

#include <algorithm>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/batching/admission_policy.h"
#include "core/batching/retry_hint.h"
#include "core/batching/run_item.h"
#include "core/batching/schedule_policy.h"

namespace triad {
namespace {

// One accepted task. Whoever takes it out of RollingScheduler::entries_ calls its Finish, so that it is called once.
struct Entry : ScheduledTask {
  std::unique_ptr<Task> task;
  int64_t bytes = 0;
  Time deadline = kNever;
  TaskTimes times = {};
  bool is_started = false;
  int64_t running_items = 0;
  Time look_at = kNever;           // its key in expiries_; kNever: not there
  bool is_ending = false;          // early, once its running items have returned
  absl::Status status;             // what Finish is told
  std::optional<Refusal> refusal;  // what the observer is told
};

// What happened under the lock and is to be told after it.
struct Aftermath {
  struct Listed {
    int64_t tasks = 0;
    int64_t tokens = 0;
  };
  std::vector<Listed> listed;
  std::vector<std::unique_ptr<Entry>> ended;

  bool empty() const { return listed.empty() && ended.empty(); }
};

class RollingScheduler final : public Scheduler {
 public:
  RollingScheduler(const SchedulerOptions& options, Clock& clock, SchedulerObserver& observer)
      : options_(options),
        clock_(clock),
        observer_(observer),
        list_({.max_tokens = options.max_batch_tokens, .max_flop = options.max_batch_flop}) {}
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
  void RunTaken(const RollingList::Taken& taken, Time begin, Scratch& scratch, Aftermath& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  bool IsSmall(const TaskCost& cost) const {
    return cost.may_run_inline && cost.flop <= options_.max_inline_flop && cost.bytes <= options_.max_inline_bytes;
  }
  // Moves into the list what has room, and wakes a worker for each new item.
  void JoinList(Aftermath& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetLookAt(Entry& entry, Time look_at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends every task that is due at `now`.
  void Expire(Time now, Aftermath& after) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Drops what `entry` has left; ends it now or when its running items have returned. Nothing when it is ending
  // already.
  void EndEarly(Entry& entry, absl::Status status, std::optional<Refusal> refusal, Aftermath& after)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends `entry` if nothing of it runs or is left to run.
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
  InFlight in_flight_ ABSL_GUARDED_BY(mu_);  // also the inline task, and the ended until Finish has returned
  ServiceRate rate_ ABSL_GUARDED_BY(mu_);
  TaskId last_id_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_draining_ ABSL_GUARDED_BY(mu_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
  int64_t idle_workers_ ABSL_GUARDED_BY(mu_) = 0;
  Time timer_wakes_at_ ABSL_GUARDED_BY(mu_) = Time::min();  // min while it is awake: it will look by itself
  CondVar work_;                                            // the list has items, or stopping
  CondVar timer_;                                           // something expires before timer_wakes_at_, or stopping
  CondVar idle_;                                            // nothing is in flight

  Scratch inline_scratch_;  // of the one task in flight, when that runs inline; handed on through mu_
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mu_);
};

void RollingScheduler::StartThreads() {
  MutexLock lock(mu_);
  const auto start = [this](const std::string& name, auto loop) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    threads_.emplace_back(loop, this);
    pthread_setname_np(threads_.back().native_handle(), name.substr(0, 15).c_str());  // the system's limit
  };
  threads_.reserve(static_cast<size_t>(options_.threads) + 1);
  for (int i = 0; i < options_.threads; ++i) start(absl::StrCat("triad-compute-", i), &RollingScheduler::WorkerLoop);
  start("triad-timer", &RollingScheduler::TimerLoop);
}

absl::StatusOr<TaskId> RollingScheduler::Submit(std::unique_ptr<Task>& task) {
  auto entry = std::make_unique<Entry>();
  const TaskCost cost = task->cost();
  entry->priority = task->priority();
  entry->tokens = cost.tokens;
  entry->flop = cost.flop;
  try {
    entry->items = LongestFirst(*task);
  } catch (const std::bad_alloc&) {  // as many as a client asked for
    return absl::ResourceExhaustedError("no memory to schedule the request");
  }
  entry->bytes = cost.bytes;
  entry->deadline = task->deadline();
  entry->times.accepted = clock_.Now();
  AdmissionDecision decision;
  {
    MutexLock lock(mu_);
    decision = Admit(in_flight_, is_draining_, entry->bytes, entry->deadline, entry->times.accepted, options_);
    if (decision.status.ok()) {
      const bool is_alone = in_flight_.tasks == 0;
      ++in_flight_.tasks;
      in_flight_.bytes += entry->bytes;
      entry->task = std::move(task);
      if (!entry->items.empty() && !(is_alone && IsSmall(cost))) {
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
  Time now = entry.times.started = entry.times.finished = clock_.Now();
  for (const ScheduledItem& item : entry.items) {
    if (entry.deadline <= now) {
      entry.refusal = Refusal::kDeadline;
      entry.status = EarlyEnd(Refusal::kDeadline, options_);
    } else {
      entry.status = RunItemCatching(*entry.task, item.item, inline_scratch_);
      now = entry.times.finished = clock_.Now();
    }
    if (!entry.status.ok()) break;
  }
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
    std::vector<Entry*> all;  // EndEarly changes entries_
    for (const auto& [id, entry] : entries_) all.push_back(entry.get());
    for (Entry* entry : all) EndEarly(*entry, EarlyEnd(Refusal::kDraining, options_), Refusal::kDraining, after);
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
  return RetryAfter(list_.waiting_flop(), rate_, options_.threads, {.longest = options_.max_queue_time});
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
    } else if (const std::optional<RollingList::Taken> taken = list_.TakeNext()) {
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

void RollingScheduler::RunTaken(const RollingList::Taken& taken, Time begin, Scratch& scratch, Aftermath& after) {
  Entry& entry = static_cast<Entry&>(*taken.task);
  ++entry.running_items;  // keeps the entry alive while mu_ is released
  if (!entry.is_started) entry.times.started = begin;
  entry.is_started = true;
  mu_.Unlock();
  absl::Status status = RunItemCatching(*entry.task, taken.item.item, scratch);
  const Time end = clock_.Now();
  mu_.Lock();
  rate_.Add(taken.item.flop, end - begin);
  entry.times.finished = std::max(entry.times.finished, end);
  Expire(end, after);  // before the item counts as done: a task whose last item ends after its deadline is late
  --entry.running_items;
  if (!status.ok() && !entry.is_ending) {
    EndEarly(entry, std::move(status), /*refusal=*/std::nullopt, after);
  } else {
    EndIfDone(entry, after);
  }
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
    const int64_t wanted = std::min(idle_workers_, static_cast<int64_t>(entry.items.size()));
    for (int64_t i = 0; i < wanted; ++i) work_.Signal();
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
  entry.is_ending = true;
  entry.status = std::move(status);
  entry.refusal = refusal;
  SetLookAt(entry, kNever);
  list_.DropItems(entry);
  EndIfDone(entry, after);
}

void RollingScheduler::EndIfDone(Entry& entry, Aftermath& after) {
  if (entry.running_items > 0 || entry.has_items_left()) return;
  SetLookAt(entry, kNever);
  list_.Leave(entry);
  if (!entry.is_started) entry.times.started = entry.times.finished = clock_.Now();
  const auto found = entries_.find(entry.id);
  after.ended.push_back(std::move(found->second));
  entries_.erase(found);
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
  after.listed.clear();
  after.ended.clear();
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
