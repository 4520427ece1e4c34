#include "core/batching/schedule_policy.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/check.h"

namespace triad {
namespace {

constexpr double kMaxFlop = 1e30;  // nobody has that long, and sums stay far from infinity

// An estimate by which one can order and add.
double BoundedFlop(double flop) { return flop > 0 ? std::min(flop, kMaxFlop) : 0; }

bool FitsAlone(int64_t tokens, double flop, const ListBudget& budget) {
  return tokens <= budget.max_tokens && flop <= budget.max_flop;
}

}  // namespace

bool HasRoom(const ListLoad& list, int64_t tokens, double flop, const ListBudget& budget) {
  if (!FitsAlone(tokens, flop, budget)) return list.oversize_tasks == 0;
  return list.tokens <= budget.max_tokens - tokens && list.flop + flop <= budget.max_flop;
}

std::vector<ScheduledItem> LongestFirst(const Task& task) {
  const int64_t count = task.item_count();
  std::vector<ScheduledItem> items;
  items.reserve(static_cast<size_t>(count));
  for (int64_t item = 0; item < count; ++item) {
    items.push_back({.item = item, .flop = BoundedFlop(task.item_flop(item))});
  }
  const auto longer = [](const ScheduledItem& a, const ScheduledItem& b) { return a.flop > b.flop; };
  if (!std::is_sorted(items.begin(), items.end(), longer)) std::stable_sort(items.begin(), items.end(), longer);
  return items;
}

bool RollingList::FinishesEarlier::operator()(const ScheduledTask* a, const ScheduledTask* b) const {
  return std::tie(a->finish_time, a->id) < std::tie(b->finish_time, b->id);
}

bool RollingList::IsOversize(const ScheduledTask& task) const { return !FitsAlone(task.tokens, task.flop, budget_); }

RollingList::Order& RollingList::QueueOf(const ScheduledTask& task) {
  return IsOversize(task) ? LaneOf(task).oversize_queue : LaneOf(task).queue;
}

void RollingList::CountListed(const ScheduledTask& task, int sign) {
  ListLoad& load = LaneOf(task).load;
  listed_tokens_ += sign * task.tokens;
  if (IsOversize(task)) {
    load.oversize_tasks += sign;
    return;
  }
  load.tasks += sign;
  load.tokens += sign * task.tokens;
  load.flop += sign * task.flop;
  if (load.tasks == 0) load.flop = 0;  // drops what rounding left
}

void RollingList::Enqueue(ScheduledTask& task) {
  TRIAD_CHECK(task.place == ScheduledTask::Place::kOutside && task.has_items_left(), "a new task is queued once");
  TRIAD_CHECK(task.share_key == nullptr || task.items.size() == 1, "Share comes before all items but one");
  Lane& lane = LaneOf(task);
  task.place = ScheduledTask::Place::kQueue;
  task.flop = task.flop_left = BoundedFlop(task.flop);
  task.finish_time = lane.virtual_time + task.flop;
  waiting_flop_ += task.flop;
  ++lane.tasks;
  QueueOf(task).insert(&task);
}

ScheduledTask* RollingList::JoinNext() {
  ListLoad above;  // this lane's load and that of the lanes above it
  for (Lane& lane : lanes_) {
    above.tasks += lane.load.tasks;
    above.tokens += lane.load.tokens;
    above.flop += lane.load.flop;
    above.oversize_tasks += lane.load.oversize_tasks;
    ScheduledTask* next = nullptr;
    for (const Order* queue : {&lane.queue, &lane.oversize_queue}) {
      if (queue->empty()) continue;
      ScheduledTask* const first = *queue->begin();
      if (!HasRoom(above, first->tokens, first->flop, budget_)) continue;
      if (next == nullptr || FinishesEarlier()(first, next)) next = first;
    }
    if (next != nullptr) {
      MoveToList(*next);
      return next;
    }
    if (!lane.queue.empty() || !lane.oversize_queue.empty()) return nullptr;
  }
  return nullptr;
}

void RollingList::MoveToList(ScheduledTask& task) {
  Lane& lane = LaneOf(task);
  QueueOf(task).erase(&task);
  task.place = ScheduledTask::Place::kList;
  task.finish_time = lane.virtual_time + task.items.front().flop;
  lane.takeable.insert(&task);
  task.is_shareable = task.share_key != nullptr;
  if (task.is_shareable) lane.shareable[task.share_key].insert(&task);
  CountListed(task, +1);
}

void RollingList::EndSharing(ScheduledTask& task) {
  if (!task.is_shareable) return;
  task.is_shareable = false;
  const auto found = LaneOf(task).shareable.find(task.share_key);
  found->second.erase(&task);
  if (found->second.empty()) LaneOf(task).shareable.erase(found);
}

std::vector<ScheduledTask*> RollingList::TakeSharers(ScheduledTask& task) {
  std::vector<ScheduledTask*> sharers;
  const auto found = LaneOf(task).shareable.find(task.share_key);
  if (found == LaneOf(task).shareable.end()) return sharers;
  int64_t tokens = task.tokens;
  for (ScheduledTask* other : found->second) {
    if (tokens > budget_.max_shared_tokens - other->tokens) break;
    tokens += other->tokens;
    sharers.push_back(other);
  }
  for (ScheduledTask* other : sharers) {
    const double flop = std::exchange(other->flop_left, 0);  // still waits, but as the work of `task`
    DropItems(*other);
    task.flop_left += flop;
  }
  return sharers;
}

std::optional<RollingList::Taken> RollingList::TakeNext() {
  for (Lane& lane : lanes_) {
    if (lane.takeable.empty()) continue;
    auto node = lane.takeable.extract(lane.takeable.begin());
    ScheduledTask& task = *node.value();
    Taken taken{.task = &task};
    if (task.is_shareable) {
      EndSharing(task);
      taken.sharers = TakeSharers(task);
      task.shares += static_cast<double>(taken.sharers.size());
    }
    const ScheduledItem item = task.items[task.next_item++];
    lane.virtual_time += item.flop / static_cast<double>(lane.tasks);
    const double taken_flop = std::min(item.flop, task.flop_left);
    task.flop_left -= taken_flop;
    waiting_flop_ -= taken_flop;
    if (task.has_items_left()) {
      task.finish_time += task.items[task.next_item].flop / task.shares;
      lane.takeable.insert(std::move(node));
    }
    taken.item = item;
    return taken;
  }
  return std::nullopt;
}

void RollingList::BeginStage(ScheduledTask& task, std::vector<ScheduledItem> items) {
  TRIAD_CHECK(task.place == ScheduledTask::Place::kList && !task.has_items_left(), "stages follow one another");
  task.items = std::move(items);
  task.next_item = 0;
  if (!task.has_items_left()) return;
  task.finish_time += task.items.front().flop / task.shares;
  LaneOf(task).takeable.insert(&task);
}

void RollingList::DropItems(ScheduledTask& task) {
  Lane& lane = LaneOf(task);
  EndSharing(task);
  if (task.place == ScheduledTask::Place::kQueue) QueueOf(task).erase(&task);
  if (task.place == ScheduledTask::Place::kList && task.has_items_left()) lane.takeable.erase(&task);
  task.next_item = task.items.size();
  waiting_flop_ -= task.flop_left;
  task.flop_left = 0;
}

void RollingList::Leave(ScheduledTask& task) {
  TRIAD_CHECK(task.place != ScheduledTask::Place::kOutside, "only a task that is queued or listed can leave");
  DropItems(task);
  if (task.place == ScheduledTask::Place::kList) CountListed(task, -1);
  --LaneOf(task).tasks;
  task.place = ScheduledTask::Place::kOutside;
  if (queued_tasks() + listed_tasks() == 0) waiting_flop_ = 0;  // drops what rounding left
}

bool RollingList::has_items() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return !lane.takeable.empty(); });
}

int64_t RollingList::queued_tasks() const {
  int64_t tasks = 0;
  for (const Lane& lane : lanes_) tasks += static_cast<int64_t>(lane.queue.size() + lane.oversize_queue.size());
  return tasks;
}

int64_t RollingList::listed_tasks() const {
  int64_t tasks = 0;
  for (const Lane& lane : lanes_) tasks += lane.load.tasks + lane.load.oversize_tasks;
  return tasks;
}

}  // namespace triad
