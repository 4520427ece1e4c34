// How fast computing goes, as far as one has seen.
#pragma once

#include "core/base/clock.h"

namespace triad {

// In the units of the estimates: what those leave out (memory, overheads) makes it slower.
struct Pace {
  double usual_flop_per_second = 0;    // of one thread, of late; 0: not known
  double fastest_flop_per_second = 0;  // of one thread, ever; 0: not known
  int threads = 1;

  // Of all threads, of late.
  double pool_flop_per_second() const { return usual_flop_per_second * threads; }
};

// What is estimated to take 100 ms may take this much more: an estimate knows neither replies and transport, nor the
// smaller requests that will come later and go before, nor the neighbours on the machine. Under load a queue settles
// where the estimate says "just in time"; one that is merely right on average would let in requests half of which are
// late, and all of which cost work (tests/unit/batching/overload_test.cc).
inline constexpr double kHeadroom = 1.25;

// Measures the pace of `threads` threads. Not thread-safe.
class ServiceRate {
 public:
  explicit ServiceRate(int threads) : threads_(threads) {}

  // An item of `flop` took `elapsed` on one thread.
  void Add(double flop, Duration elapsed);

  Pace pace() const;

 private:
  // Items one after the other on one thread.
  struct Stretch {
    double flop = 0;
    double seconds = 0;
    double flop_per_second() const { return seconds > 0 ? flop / seconds : 0; }
  };

  const int threads_;
  Stretch recent_;
  Stretch newest_;  // those that are not in fastest_ yet
  double fastest_ = 0;
};

}  // namespace triad
