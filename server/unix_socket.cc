#include "server/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace triad {
namespace {

absl::Status SystemError(const std::string& path, absl::string_view what, int error) {
  return absl::FailedPreconditionError(absl::StrCat("unix socket ", path, ": ", what, ": ", std::strerror(error)));
}

}  // namespace

std::optional<std::string> UnixSocketPath(const std::string& address) {
  absl::string_view path = address;
  if (!absl::ConsumePrefix(&path, "unix:")) return std::nullopt;
  absl::ConsumePrefix(&path, "//");
  return std::string(path);
}

absl::Status RemoveStaleSocket(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("--listen: a unix socket's path must be shorter than ",
                                                   sizeof(name.sun_path), " bytes; was ", path));
  }
  std::memcpy(name.sun_path, path.data(), path.size());
  struct stat file {};
  if (lstat(path.c_str(), &file) != 0) return errno == ENOENT ? absl::OkStatus() : SystemError(path, "stat", errno);
  if (!S_ISSOCK(file.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat("--listen=unix:", path, ": the file there is not a socket"));
  }
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return SystemError(path, "socket", errno);
  const absl::Cleanup close_probe = [probe] { close(probe); };
  if (connect(probe, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0 || errno != ECONNREFUSED) {
    return absl::FailedPreconditionError(absl::StrCat("--listen=unix:", path, ": another server listens there"));
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return SystemError(path, "unlink", errno);
  return absl::OkStatus();
}

}  // namespace triad
