// What the client needs from the world: time, chance and a timer. Tests bring their own.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>

#include "absl/time/time.h"

namespace triad::client {

// All functions may be called from any thread.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual std::chrono::steady_clock::time_point Now() = 0;
  // Even in [0, 1).
  virtual double Random() = 0;
  // Blocks for `delay`, or until a stop is requested.
  virtual void Sleep(absl::Duration delay, const std::stop_token& cancel) = 0;
  // Calls `done` once, after `delay` or soon after a stop is requested, on a thread that holds no lock of ours; never
  // from within RunAfter.
  virtual void RunAfter(absl::Duration delay, const std::stop_token& cancel, std::function<void()> done) = 0;
};

// The machine's clock and gRPC's timers and threads.
std::shared_ptr<Runtime> RealRuntime();

// The time a call has left, its retries and pauses included.
class Deadline {
 public:
  Deadline(Runtime& runtime, absl::Duration timeout) : start_(runtime.Now()), timeout_(timeout) {}

  // <= 0 once it has passed; infinite when the timeout is.
  absl::Duration Remaining(Runtime& runtime) const { return timeout_ - absl::FromChrono(runtime.Now() - start_); }

 private:
  std::chrono::steady_clock::time_point start_;
  absl::Duration timeout_;
};

}  // namespace triad::client
