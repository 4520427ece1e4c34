// Programs that a benchmark starts beside itself.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace triad {

// Runs from construction on, with an empty environment; gets SIGTERM and is awaited at the end.
class ChildProcess {
 public:
  // arguments[0] is the program's path. Ends this process with a message when it cannot be started.
  explicit ChildProcess(const std::vector<std::string>& arguments);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

 private:
  pid_t pid_ = -1;
};

// "127.0.0.1:PORT" with a port that was free a moment ago.
std::string FreeAddress();

}  // namespace triad
