#include "client/tools/bench/arrivals.h"

#include <algorithm>
#include <cmath>

namespace triad::tools {
namespace {

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

double ExpectedArrivals(const RateStage& stage) { return Seconds(stage.length) * (stage.from + stage.to) / 2; }

// When, in seconds since the stage began, `arrivals` are expected to have come: the root of
// from * t + (to - from) / (2 * length) * t^2 = arrivals, in the form that survives from = to.
double TimeOf(const RateStage& stage, double arrivals) {
  if (arrivals <= 0) return 0;
  const double slope = (stage.to - stage.from) / Seconds(stage.length);
  const double root = std::sqrt(std::max(0.0, stage.from * stage.from + 2 * slope * arrivals));
  return 2 * arrivals / (stage.from + root);
}

}  // namespace

std::optional<Duration> ArrivalTimes::Next() {
  if (plan_.spacing == Spacing::kPoisson) {
    due_ -= std::log1p(-random_.Unit());
  } else if (begun_) {
    due_ += 1;
  }
  begun_ = true;
  for (; stage_ < plan_.stages.size(); ++stage_) {
    const RateStage& stage = plan_.stages[stage_];
    const double expected = ExpectedArrivals(stage);
    if (due_ < expected) return stage_start_ + Duration(std::llround(TimeOf(stage, due_) * 1e9));
    due_ -= expected;
    stage_start_ += stage.length;
  }
  return std::nullopt;
}

}  // namespace triad::tools
