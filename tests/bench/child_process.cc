#include "tests/bench/child_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace triad {

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  char* no_environment[] = {nullptr};  // a TRIAD_* of the caller's would be a flag of the server
  TRIAD_CHECK(
      posix_spawn(&pid_, argv[0], /*file_actions=*/nullptr, /*attrp=*/nullptr, argv.data(), no_environment) == 0,
      "the program to measure can be started");
}

ChildProcess::~ChildProcess() {
  kill(pid_, SIGTERM);
  waitpid(pid_, /*wstatus=*/nullptr, /*options=*/0);
}

std::string FreeAddress() {
  const int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(name);
  TRIAD_CHECK(bind(socket_fd, reinterpret_cast<sockaddr*>(&name), size) == 0, "loopback has a free port");
  getsockname(socket_fd, reinterpret_cast<sockaddr*>(&name), &size);
  close(socket_fd);
  return absl::StrCat("127.0.0.1:", ntohs(name.sin_port));
}

}  // namespace triad
