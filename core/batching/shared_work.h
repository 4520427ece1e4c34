// Tasks that are to be computed together: who among them would be late, and when one more would make another late.
#pragma once

#include <limits>

#include "core/batching/pace.h"

namespace triad {

// All of them end when the last one does. Pure values.
class SharedWork {
 public:
  // `flop_before` has begun and goes before them.
  SharedWork(Time now, const Pace& pace, double flop_before) : now_(now), pace_(pace), flop_(flop_before) {}

  // A task of `flop` is one of them. One that will be late in any case holds up nobody.
  void Add(double flop, Time due);

  // Whether none of them becomes late, with headroom, when a task of `flop` is added. Always, while no pace is known.
  bool HasTimeFor(double flop) const { return flop_ + flop <= max_flop_; }

  // Whether a task of `flop`, were it one of them, would be late itself: at the pace of late and without headroom, so
  // that nobody is given up who might be in time. Never, while no pace is known.
  bool WouldBeLate(double flop, Time due) const;

 private:
  double FlopBy(Time due) const;  // infinite without a pace or a due time

  const Time now_;
  const Pace pace_;
  double flop_ = 0;  // of all, and of what goes before
  double max_flop_ = std::numeric_limits<double>::infinity();
};

}  // namespace triad
