// Programs that a test or a benchmark starts beside itself.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace triad {

// Runs from construction on, with an empty environment; gets SIGTERM and is awaited at the end, unless it has been
// before. Not thread-safe.
class ChildProcess {
 public:
  // arguments[0] is the program's path. Standard error goes to `error_file`, a descriptor; -1: the caller's own. Ends
  // this process with a message when the program cannot be started.
  explicit ChildProcess(const std::vector<std::string>& arguments, int error_file = -1);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Sends `signal`, unless it is 0, and waits for the end. The exit status, or -1 when a signal ended it.
  int End(int signal);

 private:
  pid_t pid_ = -1;  // -1: it was awaited
};

// "127.0.0.1:PORT" with a port that was free a moment ago.
std::string FreeAddress();

}  // namespace triad
