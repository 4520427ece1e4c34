#include "tests/unit/batching/list_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace triad {
namespace {

int ExponentOf(const ScheduledTask& task) { return task.flop >= 1 ? std::ilogb(task.flop) : 0; }

}  // namespace

std::vector<ScheduledTask*> ListModel::TasksOf(const FlowKey& key, Place place) {
  std::vector<ScheduledTask*> found;
  for (auto& [id, task] : tasks_) {
    if (KeyOf(task) == key && task.place == place) found.push_back(&task);
  }
  return found;
}

bool ListModel::HasItems(const FlowKey& key) {
  const std::vector<ScheduledTask*> listed = TasksOf(key, Place::kList);
  return std::any_of(listed.begin(), listed.end(), [](const auto* task) { return task->has_items_left(); });
}

ListLoad ListModel::LoadOf(Priority priority) const {
  ListLoad load;
  for (const auto& [id, task] : tasks_) {
    if (task.place != Place::kList || task.priority != priority) continue;
    load.oversize_tasks += IsLarge(task) ? 1 : 0;
    load.tasks += IsLarge(task) ? 0 : 1;
    load.tokens += IsLarge(task) ? 0 : task.tokens;
    load.flop += IsLarge(task) ? 0 : task.flop;
  }
  return load;
}

double ListModel::TasksLike(const ScheduledTask& task) {
  double tasks = 0;
  for (const Place place : {Place::kQueue, Place::kList}) {
    for (const ScheduledTask* other : TasksOf(KeyOf(task), place)) {
      tasks += ExponentOf(*other) == ExponentOf(task) ? 1 : 0;
    }
  }
  return tasks;
}

void ListModel::Activate(const ScheduledTask& task) {
  const FlowKey key = KeyOf(task);
  ModelFlow& flow = flows_.at(key);
  if (!HasItems(key)) flow.start_time = std::max(flow.start_time, virtual_times_[static_cast<size_t>(key.first)]);
  for (const ScheduledTask* other : TasksOf(key, Place::kList)) {
    if (other->has_items_left() && !other->is_passed_over && ExponentOf(*other) == ExponentOf(task)) return;
  }
  double& start = flow.start_times[ExponentOf(task)];
  start = std::max(start, flow.virtual_time);
}

std::map<int, ScheduledTask*> ListModel::FirstsOf(const FlowKey& key, bool is_passed_over) {
  std::map<int, ScheduledTask*> firsts;
  for (ScheduledTask* each : TasksOf(key, Place::kList)) {
    if (each->has_items_left() && each->is_passed_over == is_passed_over) firsts.insert({ExponentOf(*each), each});
  }
  return firsts;
}

double ListModel::FlopBy(const ScheduledTask& task, Time now, const Pace& pace) {
  if (task.due == kNever) return std::numeric_limits<double>::infinity();
  return std::chrono::duration<double>(task.due - now).count() * pace.pool_flop_per_second();
}

double ListModel::BegunLike(const ScheduledTask& task) {
  double flop = 0;
  for (const ScheduledTask* other : TasksOf(KeyOf(task), Place::kList)) {
    if (other->has_begun && ExponentOf(*other) == ExponentOf(task)) flop += other->flop_left;
  }
  return flop;
}

void ListModel::PassOverLate(const FlowKey& key, Time now, const Pace& pace) {
  for (bool is_done = false; !is_done;) {
    is_done = true;
    for (const auto& [exponent, first] : FirstsOf(key, /*is_passed_over=*/false)) {
      if (first->has_begun || FlopBy(*first, now, pace) >= BegunLike(*first) + first->flop) continue;
      first->is_passed_over = true;
      first->flop_left = 0;
      is_done = false;
    }
  }
}

void ListModel::Enqueue(const ScheduledTask& task) {
  const FlowKey key = KeyOf(task);
  if (flows_.count(key) == 0) {
    for (auto flow = flows_.begin(); flow != flows_.end();) {
      const bool is_empty = TasksOf(flow->first, Place::kQueue).empty() && TasksOf(flow->first, Place::kList).empty();
      const bool is_past = flow->second.start_time <= virtual_times_[static_cast<size_t>(key.first)];
      flow = flow->first.first == key.first && is_empty && is_past ? flows_.erase(flow) : std::next(flow);
    }
    flows_[key].id = task.id;
  }
  ScheduledTask& copy = tasks_[task.id] = task;
  copy.place = Place::kQueue;
  copy.flop_left = copy.flop;
}

uint64_t ListModel::JoinNext() {
  ListLoad above;
  for (const Priority priority : {Priority::kNormal, Priority::kLow}) {
    const bool is_highest = above.tasks + above.oversize_tasks == 0;
    const ListLoad own = LoadOf(priority);
    above = {.tasks = above.tasks + own.tasks,
             .tokens = above.tokens + own.tokens,
             .flop = above.flop + own.flop,
             .oversize_tasks = above.oversize_tasks + own.oversize_tasks};
    // Ranks of the flows that have something queued.
    std::vector<std::pair<std::tuple<bool, double, uint64_t>, FlowKey>> ranks;
    for (const auto& [key, flow] : flows_) {
      if (key.first != priority || TasksOf(key, Place::kQueue).empty()) continue;
      const std::vector<ScheduledTask*> listed = TasksOf(key, Place::kList);
      double until = std::max(flow.start_time, virtual_times_[static_cast<size_t>(priority)]);
      for (const ScheduledTask* task : listed) until += task->flop_left;
      ranks.push_back({{!(is_highest && listed.empty()), until, flow.id}, key});
    }
    if (ranks.empty()) continue;
    const auto& [rank, key] = *std::min_element(ranks.begin(), ranks.end());
    const bool has_own_place = !std::get<0>(rank);
    ModelFlow& flow = flows_.at(key);
    std::vector<std::tuple<double, uint64_t>> candidates;
    for (const bool is_large : {false, true}) {
      std::vector<std::tuple<double, uint64_t>> queue;
      for (const ScheduledTask* task : TasksOf(key, Place::kQueue)) {
        if (IsLarge(*task) != is_large) continue;
        double listed = 0;
        for (const ScheduledTask* other : TasksOf(key, Place::kList)) {
          if (ExponentOf(*other) == ExponentOf(*task)) listed += other->flop_left;
        }
        const double start = std::max(flow.start_times[ExponentOf(*task)], flow.virtual_time);
        queue.push_back({start + listed / TasksLike(*task), task->id});
      }
      if (queue.empty()) continue;
      const auto first = *std::min_element(queue.begin(), queue.end());
      const ScheduledTask& task = tasks_.at(std::get<1>(first));
      if (HasRoom(has_own_place ? ListLoad() : above, task.tokens, task.flop, budget_)) candidates.push_back(first);
    }
    if (candidates.empty()) return 0;
    ScheduledTask& next = tasks_.at(std::get<1>(*std::min_element(candidates.begin(), candidates.end())));
    Activate(next);
    next.place = Place::kList;
    next.is_shareable = next.share_key != nullptr;
    return next.id;
  }
  return 0;
}

ListModel::Taken ListModel::TakeNext(Time now, const Pace& pace) {
  for (const Priority priority : {Priority::kNormal, Priority::kLow}) {
    std::vector<std::pair<std::pair<double, uint64_t>, FlowKey>> ranks;
    for (const auto& [key, flow] : flows_) {
      if (key.first == priority && HasItems(key)) ranks.push_back({{flow.start_time, flow.id}, key});
    }
    if (ranks.empty()) continue;
    const FlowKey key = std::min_element(ranks.begin(), ranks.end())->second;
    ModelFlow& flow = flows_.at(key);
    PassOverLate(key, now, pace);
    std::map<int, ScheduledTask*> firsts = FirstsOf(key, /*is_passed_over=*/false);
    if (firsts.empty()) firsts = FirstsOf(key, /*is_passed_over=*/true);
    std::vector<std::tuple<double, int, uint64_t>> turns;
    for (const auto& [exponent, first] : firsts) {
      const double flop = first->is_shareable ? first->flop : first->items[first->next_item].flop;
      turns.push_back({flow.start_times[exponent] + flop / Weight(*first), exponent, first->id});
    }
    ScheduledTask& task = tasks_.at(std::get<2>(*std::min_element(turns.begin(), turns.end())));
    Taken taken{.id = task.id};
    if (task.is_shareable) {
      task.is_shareable = false;
      int64_t tokens = task.tokens;
      double flop = BegunLike(task) + task.flop;
      // Nobody who is in time becomes late, with headroom.
      double most_flop = std::numeric_limits<double>::infinity();
      const auto bound = [&](const ScheduledTask& member) {
        const double by_due = FlopBy(member, now, pace);
        if (by_due >= flop) most_flop = std::min(most_flop, std::max(flop, by_due / kHeadroom));
      };
      bound(task);
      for (ScheduledTask* other : TasksOf(key, Place::kList)) {
        if (!other->is_shareable) continue;
        const bool is_late = other->is_passed_over || FlopBy(*other, now, pace) < flop + other->flop;
        if (is_late && !task.is_passed_over) continue;
        if (tokens + other->tokens > budget_.max_shared_tokens || flop + other->flop > most_flop) break;
        tokens += other->tokens;
        flop += other->flop;
        bound(*other);
        task.flop_left += other->flop_left;
        task.shares += 1;
        DropItems(other->id);
        taken.sharers.push_back(other->id);
      }
    }
    task.has_begun = true;
    const ScheduledItem item = task.items[task.next_item++];
    flow.virtual_time = std::max(flow.virtual_time, flow.start_times[ExponentOf(task)]);
    flow.start_times[ExponentOf(task)] += item.flop / Weight(task);
    virtual_times_[static_cast<size_t>(priority)] = flow.start_time;
    flow.start_time += item.flop;
    task.flop_left -= std::min(item.flop, task.flop_left);
    taken.item = item.item;
    return taken;
  }
  return {};
}

void ListModel::BeginStage(uint64_t id, const std::vector<ScheduledItem>& items) {
  ScheduledTask& task = tasks_.at(id);
  if (!items.empty()) Activate(task);
  task.items = items;
  task.next_item = 0;
}

void ListModel::DropItems(uint64_t id) {
  ScheduledTask& task = tasks_.at(id);
  task.is_shareable = false;
  task.next_item = task.items.size();
  task.flop_left = 0;
}

void ListModel::Leave(uint64_t id) {
  const Priority priority = tasks_.at(id).priority;
  tasks_.erase(id);
  if (std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& task) { return task.second.priority == priority; })) {
    return;
  }
  for (auto flow = flows_.begin(); flow != flows_.end();) {
    flow = flow->first.first == priority ? flows_.erase(flow) : std::next(flow);
  }
  virtual_times_[static_cast<size_t>(priority)] = 0;
}

double ListModel::waiting_flop() const {
  double flop = 0;
  for (const auto& [id, task] : tasks_) flop += task.flop_left;
  return flop;
}

}  // namespace triad
