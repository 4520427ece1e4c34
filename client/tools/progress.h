// Says that something takes long, on a terminal.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <thread>

#include "core/base/clock.h"
#include "core/base/mutex.h"

namespace triad::tools {

// While it lives: a line "<stage>: <seconds> s" on `out`, rewritten every second from the first second on, and erased
// at the end. Anything done within a second prints nothing.
class Progress {
 public:
  // Prints nothing at all unless `enabled`. `out` and `clock` outlive this; nobody else writes to `out` meanwhile.
  Progress(std::ostream& out, bool enabled, Clock& clock = RealClock());
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Names what is going on from now on.
  void Enter(const std::string& stage);
  // The same for a line that changes: `stage` is called whenever one is printed, on a thread of this, once more at most
  // after the next Enter.
  void Enter(std::function<std::string()> stage);

 private:
  void Run();
  // Waits until `next`; what names the stage then, or nothing once this is ending.
  std::optional<std::function<std::string()>> StageAt(Time next);

  std::ostream& out_;
  Clock& clock_;
  const Time start_;
  Mutex mu_;  // guards what follows, up to the thread
  CondVar changed_;
  std::function<std::string()> stage_ ABSL_GUARDED_BY(mu_);
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: joined by the destructor before the rest goes; not joinable when disabled
};

}  // namespace triad::tools
