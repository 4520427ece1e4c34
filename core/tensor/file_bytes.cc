#include "core/tensor/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace triad {
namespace {

// Closes on scope exit. Whoever must hear of errors from close() calls Close.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { Close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }
  int Close() { return fd_ < 0 ? 0 : close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

}  // namespace

void MappedFile::Unmap::operator()(const std::byte* address) const { munmap(const_cast<std::byte*>(address), size); }

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer; regular files ignore it.
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, path);
  struct stat info = {};
  if (fstat(file.get(), &info) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return MappedFile(Map());
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) return absl::ErrnoToStatus(errno, path);
  return MappedFile(Map(static_cast<const std::byte*>(address), Unmap{size}));
}

absl::Status WriteFile(const std::string& path, absl::Span<const absl::string_view> pieces) {
  FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) return absl::ErrnoToStatus(errno, path);
  for (absl::string_view piece : pieces) {
    while (!piece.empty()) {
      const ssize_t written = write(file.get(), piece.data(), piece.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return absl::ErrnoToStatus(errno, path);
      piece.remove_prefix(static_cast<size_t>(written));
    }
  }
  // Some file systems say only now that the disk is full.
  if (file.Close() != 0) return absl::ErrnoToStatus(errno, path);
  return absl::OkStatus();
}

absl::Status NamePath(const absl::Status& status, const std::string& path) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

}  // namespace triad
