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

Flow::Order& Flow::TakeableOf(const ScheduledTask& task) {
  return task.is_passed_over ? ClassOf(task).passed_over : ClassOf(task).takeable;
}

Flow::Order& Flow::ShareableOf(const ScheduledTask& task) {
  return task.is_passed_over ? passed_over_shareable_ : shareable_;
}

void Flow::AddFlop(ScheduledTask& task, double flop) {
  task.flop_left += flop;
  ClassOf(task).waiting_flop += flop;
  if (task.place == Place::kList) ClassOf(task).listed_flop += flop;
  if (task.has_begun) ClassOf(task).begun_flop += flop;
}

void Flow::MakeTakeable(ScheduledTask& task) {
  SizeClass& own = ClassOf(task);
  if (own.takeable.empty()) own.start_time = std::max(own.start_time, virtual_time_);
  TakeableOf(task).insert(&task);
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
  if (task.is_shareable) ShareableOf(task).insert(&task);
}

void Flow::EndSharing(ScheduledTask& task) {
  if (!task.is_shareable) return;
  task.is_shareable = false;
  ShareableOf(task).erase(&task);
}

void Flow::PassOverLate(SizeClass& size_class, Time now, const Pace& pace) {
  const SharedWork begun(now, pace, size_class.begun_flop);
  while (!size_class.takeable.empty()) {
    ScheduledTask& task = size_class.first();
    if (task.has_begun || !begun.WouldBeLate(task.flop, task.due)) return;
    TakeableOf(task).erase(&task);
    if (task.is_shareable) ShareableOf(task).erase(&task);
    AddFlop(task, -task.flop_left);  // nobody waits for it any more
    task.is_passed_over = true;
    if (task.is_shareable) ShareableOf(task).insert(&task);
    MakeTakeable(task);
  }
}

std::vector<ScheduledTask*> Flow::TakeSharers(ScheduledTask& task, Time now, const Pace& pace) {
  std::vector<ScheduledTask*> sharers;
  SharedWork shared(now, pace, ClassOf(task).begun_flop);
  shared.Add(task.flop, task.due);
  int64_t tokens = task.tokens;
  // One that is passed over has its turn when all listed are: they are late together.
  for (ScheduledTask* other : ShareableOf(task)) {
    if (!task.is_passed_over && shared.WouldBeLate(other->flop, other->due)) continue;
    if (tokens > budget_.max_shared_tokens - other->tokens || !shared.HasTimeFor(other->flop)) break;
    shared.Add(other->flop, other->due);
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

Flow::SizeClass* Flow::NextClass(Order SizeClass::*order) {
  SizeClass* next = nullptr;
  double next_finish_time = 0;
  for (auto& [exponent, each] : classes_) {
    if ((each.*order).empty()) continue;
    const ScheduledTask& first = **(each.*order).begin();
    const double finish_time = each.start_time + each.ChargeFor(first, NextFlop(first));
    if (next != nullptr && next_finish_time <= finish_time) continue;
    next = &each;
    next_finish_time = finish_time;
  }
  return next;
}

TakenItem Flow::TakeNext(Time now, const Pace& pace) {
  for (auto& [exponent, each] : classes_) PassOverLate(each, now, pace);
  SizeClass* next = NextClass(&SizeClass::takeable);
  if (next == nullptr) next = NextClass(&SizeClass::passed_over);
  ScheduledTask& task = next->first();
  TakenItem taken{.task = &task};
  if (task.is_shareable) {
    EndSharing(task);
    taken.sharers = TakeSharers(task, now, pace);
    task.shares += static_cast<int64_t>(taken.sharers.size());
  }
  if (!task.has_begun) next->begun_flop += task.flop_left;
  task.has_begun = true;
  taken.item = task.items[task.next_item++];
  virtual_time_ = std::max(virtual_time_, next->start_time);
  next->start_time += next->ChargeFor(task, taken.item.flop);
  AddFlop(task, -std::min(taken.item.flop, task.flop_left));
  if (!task.has_items_left()) TakeableOf(task).erase(&task);
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
  if (task.place == Place::kList && task.has_items_left()) TakeableOf(task).erase(&task);
  task.next_item = task.items.size();
  AddFlop(task, -task.flop_left);
}

void Flow::Leave(ScheduledTask& task) {
  TRIAD_CHECK(task.place != Place::kOutside, "only a task that is queued or listed can leave");
  DropItems(task);
  --(task.place == Place::kList ? listed_tasks_ : queued_tasks_);
  SizeClass& own = ClassOf(task);
  if (--own.tasks == 0) own.waiting_flop = own.listed_flop = own.begun_flop = 0;  // drops what rounding left
  task.place = Place::kOutside;
  task.flow = nullptr;
}

bool Flow::has_items() const {
  return std::any_of(classes_.begin(), classes_.end(), [](const auto& each) {
    return !each.second.takeable.empty() || !each.second.passed_over.empty();
  });
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

// On average it is in the middle of its batch, so half of the room for others is behind it. While it waits, no more
// come than are computed: on average half of what waits.
double Flow::FlopOfLaterSharers(const ScheduledTask& task, double waiting_flop) const {
  if (task.share_key == nullptr || task.tokens <= 0) return 0;
  const int64_t room_tokens = std::max<int64_t>(0, budget_.max_shared_tokens - task.tokens);
  const double room_flop = task.flop / static_cast<double>(task.tokens) * static_cast<double>(room_tokens);
  return std::min(room_flop, waiting_flop) / 2;
}

double Flow::FlopUntilDone(const ScheduledTask& task) const {
  // All of its own class goes before it, and of each other class what its shares come to meanwhile.
  const int own_exponent = SizeExponent(task.flop);
  const auto own = classes_.find(own_exponent);
  const double waiting = own == classes_.end() ? 0 : own->second.waiting_flop;
  const double of_own_class = waiting + task.flop + FlopOfLaterSharers(task, waiting);
  const double share = of_own_class / static_cast<double>(1 + (own == classes_.end() ? 0 : own->second.tasks));
  double until_done = of_own_class;
  for (const auto& [exponent, each] : classes_) {
    if (exponent == own_exponent) continue;
    until_done += std::min(each.waiting_flop, static_cast<double>(each.tasks) * share);
  }
  return until_done;
}

}  // namespace triad
