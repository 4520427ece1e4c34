// Knows when gRPC is calling us back.
#pragma once

namespace triad::client {

// Stands in every callback that gRPC runs, around everything the callback calls and destroys. gRPC 1.51 joins its
// callback threads when the last channel of the process goes; on one of those threads that would be a wait for itself,
// and is a crash. So whoever may destroy a channel asks IsActive first, and leaves it to another thread.
class CallbackScope {
 public:
  CallbackScope() : outer_(active_) { active_ = true; }
  ~CallbackScope() { active_ = outer_; }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

  // Whether this thread is inside one.
  static bool IsActive() { return active_; }

 private:
  const bool outer_;
  static inline thread_local bool active_ = false;
};

}  // namespace triad::client
