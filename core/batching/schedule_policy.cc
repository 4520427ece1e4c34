#include "core/batching/schedule_policy.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/check.h"

namespace triad {
namespace {

// Whose turn it is to join: smaller goes first.
using JoinRank = std::tuple<bool, double, uint64_t>;

JoinRank JoinRankOf(const Flow& flow, bool has_own_place, double virtual_time) {
  // The virtual time at which what it has listed will have been taken.
  const double listed_until = std::max(flow.start_time, virtual_time) + flow.listed_flop();
  return {!has_own_place, listed_until, flow.id()};
}

}  // namespace

double RollingList::Lane::waiting_flop() const {
  double flop = 0;
  for (const auto& [key, flow] : flows) flop += flow.waiting_flop();
  return flop;
}

void RollingList::Lane::Activate(Flow& flow) const {
  if (!flow.has_items()) flow.start_time = std::max(flow.start_time, virtual_time);
}

void RollingList::CountListed(const ScheduledTask& task, int sign) {
  ListLoad& load = LaneOf(task).load;
  listed_tokens_ += sign * task.tokens;
  if (IsOversize(task.tokens, task.flop, budget_)) {
    load.oversize_tasks += sign;
    return;
  }
  load.tasks += sign;
  load.tokens += sign * task.tokens;
  load.flop += sign * task.flop;
  if (load.tasks == 0) load.flop = 0;  // drops what rounding left
}

void RollingList::Enqueue(ScheduledTask& task) {
  Lane& lane = LaneOf(task);
  auto found = lane.flows.find(task.share_key);
  if (found == lane.flows.end()) {
    // Those that virtual time has caught up with would begin like new ones.
    for (auto flow = lane.flows.begin(); flow != lane.flows.end();) {
      const bool is_forgotten = flow->second.tasks() == 0 && flow->second.start_time <= lane.virtual_time;
      flow = is_forgotten ? lane.flows.erase(flow) : std::next(flow);
    }
    found = lane.flows.try_emplace(task.share_key, budget_, task.id).first;
  }
  found->second.Enqueue(task);
  ++lane.tasks;
}

ScheduledTask* RollingList::JoinNext() {
  ListLoad load;  // of this lane and those above it
  for (Lane& lane : lanes_) {
    const bool is_highest = load.tasks + load.oversize_tasks == 0;
    load.tasks += lane.load.tasks;
    load.tokens += lane.load.tokens;
    load.flop += lane.load.flop;
    load.oversize_tasks += lane.load.oversize_tasks;
    if (lane.queued_tasks() == 0) continue;
    Flow* next = nullptr;
    JoinRank next_rank;
    for (auto& [key, flow] : lane.flows) {
      if (flow.queued_tasks() == 0) continue;
      const JoinRank rank = JoinRankOf(flow, is_highest && flow.listed_tasks() == 0, lane.virtual_time);
      if (next != nullptr && next_rank < rank) continue;
      next = &flow;
      next_rank = rank;
    }
    const bool has_own_place = !std::get<0>(next_rank);
    ScheduledTask* const task = next->NextQueued(has_own_place ? ListLoad() : load);
    if (task == nullptr) return nullptr;
    lane.Activate(*next);
    next->MoveToList(*task);
    CountListed(*task, +1);
    return task;
  }
  return nullptr;
}

std::optional<TakenItem> RollingList::TakeNext(Time now, const Pace& pace) {
  for (Lane& lane : lanes_) {
    Flow* next = nullptr;
    for (auto& [key, flow] : lane.flows) {
      if (!flow.has_items()) continue;
      if (next == nullptr || std::tuple(flow.start_time, flow.id()) < std::tuple(next->start_time, next->id())) {
        next = &flow;
      }
    }
    if (next == nullptr) continue;
    lane.virtual_time = next->start_time;
    TakenItem taken = next->TakeNext(now, pace);
    next->start_time += taken.item.flop;
    return taken;
  }
  return std::nullopt;
}

void RollingList::BeginStage(ScheduledTask& task, std::vector<ScheduledItem> items) {
  LaneOf(task).Activate(*task.flow);
  task.flow->BeginStage(task, std::move(items));
}

void RollingList::Leave(ScheduledTask& task) {
  TRIAD_CHECK(task.flow != nullptr, "only a task that is queued or listed can leave");
  Lane& lane = LaneOf(task);
  if (task.place == ScheduledTask::Place::kList) CountListed(task, -1);
  task.flow->Leave(task);
  if (--lane.tasks > 0) return;
  lane.flows.clear();  // nobody waits, so nobody is owed
  lane.virtual_time = 0;
}

double RollingList::FlopBefore(const ScheduledTask& task) const {
  double before = 0;
  for (const Lane& lane : lanes_) {
    if (&lane != &LaneOf(task)) {
      before += lane.waiting_flop();
      continue;
    }
    const auto own = lane.flows.find(task.share_key);
    const double of_own_flow = own == lane.flows.end() ? task.flop : own->second.FlopUntilDone(task);
    before += of_own_flow - task.flop;
    for (const auto& [key, flow] : lane.flows) {
      if (key != task.share_key) before += std::min(flow.waiting_flop(), of_own_flow);
    }
    break;
  }
  return before;
}

bool RollingList::has_items() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) {
    return std::any_of(lane.flows.begin(), lane.flows.end(), [](const auto& flow) { return flow.second.has_items(); });
  });
}

int64_t RollingList::queued_tasks() const {
  int64_t tasks = 0;
  for (const Lane& lane : lanes_) tasks += lane.queued_tasks();
  return tasks;
}

int64_t RollingList::listed_tasks() const {
  int64_t tasks = 0;
  for (const Lane& lane : lanes_) tasks += lane.load.tasks + lane.load.oversize_tasks;
  return tasks;
}

double RollingList::waiting_flop() const {
  double flop = 0;
  for (const Lane& lane : lanes_) flop += lane.waiting_flop();
  return flop;
}

int64_t RollingList::flows() const {
  int64_t flows = 0;
  for (const Lane& lane : lanes_) flows += static_cast<int64_t>(lane.flows.size());
  return flows;
}

}  // namespace triad
