#include "core/batching/flow.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "core/base/check.h"
#include "core/batching/shared_work.h"

namespace triad {
namespace {

using Place = ScheduledTask::Place;

int SizeExponent(double flop) { return flop >= 1 ? std::ilogb(flop) : 0; }

// What counts when its turn is decided. The first item of a task that may share makes a batch and has next to no flop:
// until then all of it counts.
double NextFlop(const ScheduledTask& task) { return task.is_shareable ? task.flop : task.items[task.next_item].flop; }

}  // namespace

double Flow::SizeClass::ChargeFor(const ScheduledTask& task, double flop) const {
  return flop / static_cast<double>(std::max(tasks, task.shares));
}

Flow::SizeClass& Flow::ClassOf(const ScheduledTask& task) { return classes_[SizeExponent(task.flop)]; }

Flow::Order& Flow::QueueOf(const ScheduledTask& task) {
  return IsOversize(task.tokens, task.flop, budget_) ? ClassOf(task).oversize_queue : ClassOf(task).queue;
}

void Flow::AddFlop(ScheduledTask& task, double flop) {
  task.flop_left += flop;
  ClassOf(task).waiting_flop += flop;
  if (task.place == Place::kList) ClassOf(task).listed_flop += flop;
}

void Flow::MakeTakeable(ScheduledTask& task) {
  SizeClass& own = ClassOf(task);
  if (own.takeable.empty()) own.start_time = std::max(own.start_time, virtual_time_);
  own.takeable.insert(&task);
}

void Flow::Enqueue(ScheduledTask& task) {
  TRIAD_CHECK(task.place == Place::kOutside && task.has_items_left(), "a new task is queued once");
  TRIAD_CHECK(task.share_key == nullptr || task.items.size() == 1, "Share comes before all items but one");
  task.place = Place::kQueue;
  task.flow = this;
  ++queued_tasks_;
  ++ClassOf(task).tasks;
  AddFlop(task, task.flop);
  QueueOf(task).insert(&task);
}

ScheduledTask* Flow::NextQueued(const ListLoad& list) const {
  // A task and its rank, of which the smaller goes first: the virtual time at which what its class has listed will have
  // been taken, then its age.
  struct Candidate {
    double listed_until = 0;
    ScheduledTask* task = nullptr;
    bool GoesBefore(const Candidate& other) const {
      if (other.task == nullptr) return true;
      return std::tie(listed_until, task->id) < std::tie(other.listed_until, other.task->id);
    }
  };
  Candidate next;
  for (const auto queue : {&SizeClass::queue, &SizeClass::oversize_queue}) {
    Candidate first;
    for (const auto& [exponent, each] : classes_) {
      if ((each.*queue).empty()) continue;
      const double begin = std::max(each.start_time, virtual_time_);
      const Candidate candidate{begin + each.listed_flop / static_cast<double>(each.tasks), *(each.*queue).begin()};
      if (candidate.GoesBefore(first)) first = candidate;
    }
    if (first.task == nullptr || !HasRoom(list, first.task->tokens, first.task->flop, budget_)) continue;
    if (first.GoesBefore(next)) next = first;
  }
  return next.task;
}

void Flow::MoveToList(ScheduledTask& task) {
  QueueOf(task).erase(&task);
  task.place = Place::kList;
  --queued_tasks_;
  ++listed_tasks_;
  ClassOf(task).listed_flop += task.flop_left;
  MakeTakeable(task);
  task.is_shareable = task.share_key != nullptr;
  if (task.is_shareable) shareable_.insert(&task);
}

void Flow::EndSharing(ScheduledTask& task) {
  if (!task.is_shareable) return;
  task.is_shareable = false;
  shareable_.erase(&task);
}

std::vector<ScheduledTask*> Flow::TakeSharers(ScheduledTask& task, Time now, const Pace& pace) {
  std::vector<ScheduledTask*> sharers;
  SharedWork shared(now, pace);
  shared.Add(task.flop, task.deadline);
  int64_t tokens = task.tokens;
  for (ScheduledTask* other : shareable_) {
    if (tokens > budget_.max_shared_tokens - other->tokens || !shared.HasTimeFor(other->flop)) break;
    shared.Add(other->flop, other->deadline);
    tokens += other->tokens;
    sharers.push_back(other);
  }
  for (ScheduledTask* other : sharers) {
    const double flop = other->flop_left;  // still waits, but as the work of `task`
    DropItems(*other);
    AddFlop(task, flop);
  }
  return sharers;
}

TakenItem Flow::TakeNext(Time now, const Pace& pace) {
  SizeClass* next = nullptr;
  double next_finish_time = 0;
  for (auto& [exponent, each] : classes_) {
    if (each.takeable.empty()) continue;
    const ScheduledTask& first = **each.takeable.begin();
    const double finish_time = each.start_time + each.ChargeFor(first, NextFlop(first));
    if (next != nullptr && next_finish_time <= finish_time) continue;
    next = &each;
    next_finish_time = finish_time;
  }
  ScheduledTask& task = **next->takeable.begin();
  TakenItem taken{.task = &task};
  if (task.is_shareable) {
    EndSharing(task);
    taken.sharers = TakeSharers(task, now, pace);
    task.shares += static_cast<int64_t>(taken.sharers.size());
  }
  taken.item = task.items[task.next_item++];
  virtual_time_ = std::max(virtual_time_, next->start_time);
  next->start_time += next->ChargeFor(task, taken.item.flop);
  AddFlop(task, -std::min(taken.item.flop, task.flop_left));
  if (!task.has_items_left()) next->takeable.erase(&task);
  return taken;
}

void Flow::BeginStage(ScheduledTask& task, std::vector<ScheduledItem> items) {
  TRIAD_CHECK(task.place == Place::kList && !task.has_items_left(), "stages follow one another");
  task.items = std::move(items);
  task.next_item = 0;
  if (task.has_items_left()) MakeTakeable(task);
}

void Flow::DropItems(ScheduledTask& task) {
  EndSharing(task);
  if (task.place == Place::kQueue) QueueOf(task).erase(&task);
  if (task.place == Place::kList && task.has_items_left()) ClassOf(task).takeable.erase(&task);
  task.next_item = task.items.size();
  AddFlop(task, -task.flop_left);
}

void Flow::Leave(ScheduledTask& task) {
  TRIAD_CHECK(task.place != Place::kOutside, "only a task that is queued or listed can leave");
  DropItems(task);
  --(task.place == Place::kList ? listed_tasks_ : queued_tasks_);
  SizeClass& own = ClassOf(task);
  if (--own.tasks == 0) own.waiting_flop = own.listed_flop = 0;  // drops what rounding left
  task.place = Place::kOutside;
  task.flow = nullptr;
}

bool Flow::has_items() const {
  return std::any_of(classes_.begin(), classes_.end(), [](const auto& each) { return !each.second.takeable.empty(); });
}

double Flow::listed_flop() const {
  double flop = 0;
  for (const auto& [exponent, each] : classes_) flop += each.listed_flop;
  return flop;
}

double Flow::waiting_flop() const {
  double flop = 0;
  for (const auto& [exponent, each] : classes_) flop += each.waiting_flop;
  return flop;
}

double Flow::FlopUntilDone(double flop) const {
  // All of its own class goes before it, and of each other class what its shares come to meanwhile.
  const int own_exponent = SizeExponent(flop);
  const auto own = classes_.find(own_exponent);
  const double of_own_class = flop + (own == classes_.end() ? 0 : own->second.waiting_flop);
  const double share = of_own_class / static_cast<double>(1 + (own == classes_.end() ? 0 : own->second.tasks));
  double until_done = of_own_class;
  for (const auto& [exponent, each] : classes_) {
    if (exponent == own_exponent) continue;
    until_done += std::min(each.waiting_flop, static_cast<double>(each.tasks) * share);
  }
  return until_done;
}

}  // namespace triad
