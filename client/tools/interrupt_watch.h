// Ctrl-C as a request to end in order.
#pragma once

#include <stop_token>
#include <thread>

namespace triad::tools {

// While it lives, the first SIGINT of the process requests a stop, and the second ends the process as if this were not
// here. One at a time. Not for a process in which others handle SIGINT.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  std::thread thread_;  // takes the news out of the signal handler, in which hardly anything may be done
};

}  // namespace triad::tools
