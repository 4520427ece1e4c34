#include "tests/support/child_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace triad {

ChildProcess::ChildProcess(const std::vector<std::string>& arguments, int error_file) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  char* no_environment[] = {nullptr};  // a TRIAD_* of the caller's would be a flag of the server
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (error_file >= 0) posix_spawn_file_actions_adddup2(&files, error_file, STDERR_FILENO);
  TRIAD_CHECK(posix_spawn(&pid_, argv[0], &files, /*attrp=*/nullptr, argv.data(), no_environment) == 0,
              "the program can be started");
  posix_spawn_file_actions_destroy(&files);
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) End(SIGTERM);
}

int ChildProcess::End(int signal) {
  kill(pid_, signal);
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, /*options=*/0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
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
