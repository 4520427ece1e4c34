// A rolling list and the tasks in it, for tests of the policies alone.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/batching/schedule_policy.h"

namespace triad {

inline constexpr ListBudget kAmpleBudget = {.max_tokens = 1'000'000, .max_flop = 1e12};

// Their addresses are keys of flows.
inline constexpr int kLayerKeys[8] = {};

struct ListedSpec {
  std::vector<double> item_flop = {1};
  int64_t tokens = 1;
  Priority priority = Priority::kNormal;
  const void* key = nullptr;  // its flow; one with a key has one item
  double later_flop = 0;      // of later stages
  Time due = kNever;
};

// Tasks have the ids 1, 2, ... and live as long as this.
class ListBench {
 public:
  explicit ListBench(const ListBudget& budget = kAmpleBudget) : list(budget) {}

  // A task outside.
  ScheduledTask& Make(const ListedSpec& spec);
  // In the queue.
  ScheduledTask& Queue(const ListedSpec& spec);
  // In the list; fails the test when there is no room, or another one's turn.
  ScheduledTask& Join(const ListedSpec& spec);
  // Moves into the list what has room.
  void JoinAll();

  std::optional<TakenItem> Take(Time now = {}, const Pace& pace = {}) { return list.TakeNext(now, pace); }
  // The tasks whose items are taken, in order, until none is left or `most` are.
  std::vector<uint64_t> TakeIds(size_t most = 1'000'000);

  RollingList list;

 private:
  std::deque<ScheduledTask> tasks_;
};

}  // namespace triad
