// A server as a process of its own, for tests that look at its memory and threads.
#pragma once

#include <grpcpp/channel.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/child_process.h"

namespace triad {

class ServerProcess {
 public:
  // Starts triad-server on free ports of 127.0.0.1 with two compute threads, no demo layer, and `flags`. Returns when
  // it serves; ends this process with a message when it does not.
  explicit ServerProcess(const std::vector<std::string>& flags = {});
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // host:port of gRPC, and of the pages.
  const std::string& target() const { return target_; }
  const std::string& http_address() const { return http_address_; }
  // A connection of its own, without message limits.
  std::shared_ptr<grpc::Channel> NewChannel() const;

  // From /proc. The peak is that since the start.
  int64_t ResidentBytes() const { return ReadStatus("VmRSS:") * 1024; }
  int64_t PeakResidentBytes() const { return ReadStatus("VmHWM:") * 1024; }
  // Threads whose names begin with `prefix`.
  int64_t Threads(const std::string& prefix) const;

  // Sends SIGTERM, and does not wait. Once.
  void BeginStop();
  // Sends SIGTERM unless BeginStop has, and waits. The exit status.
  int Stop();

 private:
  // Number of the line of /proc/<pid>/status that begins with `name`.
  int64_t ReadStatus(const std::string& name) const;

  int log_ = -1;  // what the process logs
  std::unique_ptr<ChildProcess> process_;
  bool is_stopping_ = false;
  std::string target_;
  std::string http_address_;
};

}  // namespace triad
