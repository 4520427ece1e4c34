#include "core/batching/finish_estimate.h"

#include <algorithm>

namespace triad {
namespace {

// The fastest pace seen may be this much below what there is: the warm-up is short and cold, and decode, which waits
// for memory, may be all that came so far.
constexpr double kUnseenPace = 2;

// A timeout travels in at most three digits, rounded up by gRPC: 1 s may arrive as 1.01 s, and the caller hangs up at
// 1 s. Then the answer has its way to go, some 10 ms on a machine that is overloaded.
constexpr int kReserveFraction = 32;
constexpr Duration kLongestReserve = std::chrono::milliseconds(100);

constexpr double kLongest = 1e9;  // seconds; the conversion would overflow at 9.2e9

Duration Seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::min(seconds, kLongest)));
}

}  // namespace

Duration AnswerReserve(Duration left) { return std::clamp(left / kReserveFraction, Duration::zero(), kLongestReserve); }

Duration LeastTime(double flop, double longest_item_flop, const Pace& pace) {
  if (!(pace.fastest_flop_per_second > 0)) return Duration::zero();
  const double on_one_thread = std::max(flop / pace.threads, longest_item_flop);
  return Seconds(on_one_thread / (pace.fastest_flop_per_second * kUnseenPace));
}

Duration QueueTime(double flop, const Pace& pace) {
  if (!(pace.pool_flop_per_second() > 0)) return Duration::zero();
  return Seconds(kHeadroom * flop / pace.pool_flop_per_second());
}

FinishEstimate EstimateFinish(const ScheduledTask& task, const RollingList* list, const Pace& pace) {
  const double longest_item_flop = task.items.empty() ? 0 : task.items.front().flop;
  return {.least = LeastTime(task.flop, longest_item_flop, pace),
          .queued = QueueTime(list == nullptr ? 0 : list->FlopBefore(task), pace)};
}

}  // namespace triad
