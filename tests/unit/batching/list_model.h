// The order of the rolling list by its rules alone: plain loops over all tasks, nothing kept that can be looked up.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/batching/pace.h"
#include "core/batching/scheduled_task.h"

namespace triad {

class ListModel {
 public:
  explicit ListModel(const ListBudget& budget) : budget_(budget) {}

  void Enqueue(const ScheduledTask& task);  // a copy, by id
  uint64_t JoinNext();                      // id; 0: none
  struct Taken {
    uint64_t id = 0;  // 0: none
    int64_t item = 0;
    std::vector<uint64_t> sharers;
  };
  Taken TakeNext(Time now, const Pace& pace);
  void BeginStage(uint64_t id, const std::vector<ScheduledItem>& items);
  void DropItems(uint64_t id);
  void Leave(uint64_t id);
  double waiting_flop() const;

 private:
  using FlowKey = std::pair<Priority, const void*>;
  struct ModelFlow {
    uint64_t id = 0;
    double start_time = 0;
    double virtual_time = 0;
    std::map<int, double> start_times;  // of its size classes
  };
  using Place = ScheduledTask::Place;

  FlowKey KeyOf(const ScheduledTask& task) const { return {task.priority, task.share_key}; }
  bool IsLarge(const ScheduledTask& task) const { return IsOversize(task.tokens, task.flop, budget_); }
  // Tasks of the flow at `place`.
  std::vector<ScheduledTask*> TasksOf(const FlowKey& key, Place place);
  bool HasItems(const FlowKey& key);
  ListLoad LoadOf(Priority priority) const;
  double TasksLike(const ScheduledTask& task);  // of its flow and size class
  double Weight(const ScheduledTask& task) { return std::max(TasksLike(task), static_cast<double>(task.shares)); }
  // `task` gets something to take.
  void Activate(const ScheduledTask& task);
  // The first of each class that has items left, by class: of those that are passed over, or of the others.
  std::map<int, ScheduledTask*> FirstsOf(const FlowKey& key, bool is_passed_over);
  double FlopBy(const ScheduledTask& task, Time now, const Pace& pace);  // that can be computed until it is due
  double BegunLike(const ScheduledTask& task);                           // flop, of its flow and size class
  void PassOverLate(const FlowKey& key, Time now, const Pace& pace);

  const ListBudget budget_;
  std::map<uint64_t, ScheduledTask> tasks_;  // by id
  std::map<FlowKey, ModelFlow> flows_;
  double virtual_times_[2] = {};  // by priority
};

}  // namespace triad
