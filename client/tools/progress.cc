#include "client/tools/progress.h"

#include <chrono>
#include <utility>

namespace triad::tools {
namespace {
constexpr char kEraseLine[] = "\r\x1b[K";  // back to its start, and ANSI's "erase to the end of the line"
}  // namespace

Progress::Progress(std::ostream& out, bool enabled, Clock& clock) : out_(out), clock_(clock), start_(clock.Now()) {
  Enter("working");
  if (enabled) thread_ = std::thread([this] { Run(); });
}

Progress::~Progress() {
  {
    MutexLock lock(mu_);
    done_ = true;
  }
  changed_.Signal();
  if (thread_.joinable()) thread_.join();
}

void Progress::Enter(const std::string& stage) {
  Enter([stage] { return stage; });
}

void Progress::Enter(std::function<std::string()> stage) {
  MutexLock lock(mu_);
  stage_ = std::move(stage);
}

void Progress::Run() {
  int64_t seconds = 1;
  while (const auto stage = StageAt(start_ + std::chrono::seconds(seconds))) {
    out_ << kEraseLine << (*stage)() << ": " << seconds << " s" << std::flush;
    ++seconds;
  }
  if (seconds > 1) out_ << kEraseLine << std::flush;
}

std::optional<std::function<std::string()>> Progress::StageAt(Time next) {
  MutexLock lock(mu_);
  while (!done_ && clock_.Now() < next) clock_.WaitUntil(changed_, mu_, next);
  if (done_) return std::nullopt;
  return stage_;
}

}  // namespace triad::tools
