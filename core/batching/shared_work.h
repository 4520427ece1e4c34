// Tasks that are to be computed together: when one more would cost another its deadline.
#pragma once

#include <limits>

#include "core/batching/pace.h"

namespace triad {

// All of them end when the last one does. Pure values.
class SharedWork {
 public:
  SharedWork(Time now, const Pace& pace) : now_(now), pace_(pace) {}

  // A task of `flop` is one of them. One that will be late in any case holds up nobody.
  void Add(double flop, Time deadline);

  // Always, while no pace is known.
  bool HasTimeFor(double flop) const { return flop_ + flop <= max_flop_; }

 private:
  const Time now_;
  const Pace pace_;
  double flop_ = 0;  // of all
  double max_flop_ = std::numeric_limits<double>::infinity();
};

}  // namespace triad
