// A Runtime whose time stands still until somebody waits.
#pragma once

#include <chrono>
#include <functional>
#include <stop_token>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/src/runtime.h"

namespace triad::client {

// For one thread. Sleep moves the clock; RunAfter keeps its callback until RunPending.
class FakeRuntime final : public Runtime {
 public:
  std::chrono::steady_clock::time_point Now() override { return now_; }
  double Random() override { return random; }
  void Sleep(absl::Duration delay, const std::stop_token& cancel) override {
    pauses.push_back(delay);
    if (on_sleep) on_sleep();
    if (!cancel.stop_requested()) Advance(delay);
  }
  void RunAfter(absl::Duration delay, const std::stop_token& cancel, std::function<void()> done) override {
    pauses.push_back(delay);
    pending_.push_back({delay, cancel, std::move(done)});
  }

  void Advance(absl::Duration by) { now_ += absl::ToChronoNanoseconds(by); }

  // Runs what RunAfter was given, and what that adds, until nothing is left.
  void RunPending() {
    while (!pending_.empty()) {
      const Pending next = std::move(pending_.front());
      pending_.erase(pending_.begin());
      if (!next.cancel.stop_requested()) Advance(next.delay);
      next.done();
    }
  }

  double random = 1;                   // the longest pause
  std::function<void()> on_sleep;      // called while Sleep waits
  std::vector<absl::Duration> pauses;  // every delay asked for, in order

 private:
  struct Pending {
    absl::Duration delay;
    std::stop_token cancel;
    std::function<void()> done;
  };

  std::chrono::steady_clock::time_point now_;
  std::vector<Pending> pending_;
};

}  // namespace triad::client
