// When requests are due in an open loop, as a pure function of a schedule and a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/random.h"

namespace triad::tools {

// A stretch of time in which the rate goes linearly from `from` to `to`, both in requests/s and >= 0.
struct RateStage {
  Duration length = {};
  double from = 0;
  double to = 0;
};

enum class Spacing {
  kConstant,  // as even as the rate allows, the first at once
  kPoisson,   // independent of each other: what many users who know nothing of each other do
};

struct ArrivalPlan {
  std::vector<RateStage> stages = {};  // one after another
  Spacing spacing = Spacing::kConstant;
  uint64_t seed = 0;  // of kPoisson
};

// The times of a plan, one after another, counted from its start.
//
// With the rate integrated over time, arrivals are evenly spaced in it (kConstant: one a unit; kPoisson: exponential
// gaps of mean 1), which is exact for ramps too. Memory does not grow with the number of arrivals.
class ArrivalTimes {
 public:
  explicit ArrivalTimes(ArrivalPlan plan) : plan_(std::move(plan)), random_(plan_.seed) {}

  // nullopt: the plan is over.
  std::optional<Duration> Next();

 private:
  const ArrivalPlan plan_;
  Random random_;
  double due_ = 0;             // of the next one, in expected arrivals since the current stage began
  bool begun_ = false;         // the first has been given
  size_t stage_ = 0;           // index into plan_.stages
  Duration stage_start_ = {};  // since the plan's start
};

}  // namespace triad::tools
