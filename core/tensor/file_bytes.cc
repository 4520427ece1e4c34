#include "core/tensor/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace triad {
namespace {

// Closes on scope exit. Whoever must hear of errors from close() calls Close.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor() { Close(); }

  int get() const { return fd_; }
  int Close() { return fd_ < 0 ? 0 : close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

struct RegularFile {
  FileDescriptor fd;
  struct stat info;  // when it was opened

  size_t size() const { return static_cast<size_t>(info.st_size); }
};

absl::StatusOr<RegularFile> OpenRegular(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer; regular files ignore it.
  FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info = {};
  if (fd.get() < 0 || fstat(fd.get(), &info) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  return RegularFile{std::move(fd), info};
}

// Reads from the start of the file until `bytes` are filled or the file ends; how many, or -1 with errno.
ssize_t ReadUpTo(int fd, absl::Span<std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return static_cast<ssize_t>(done);
}

bool SameTime(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

}  // namespace

void UnmapPages::operator()(const std::byte* address) const { munmap(const_cast<std::byte*>(address), size); }

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const absl::StatusOr<RegularFile> file = OpenRegular(path);
  if (!file.ok()) return file.status();
  if (file->size() == 0) return MappedFile(Pages());
  void* address = mmap(nullptr, file->size(), PROT_READ, MAP_PRIVATE, file->fd.get(), 0);
  if (address == MAP_FAILED) return absl::ErrnoToStatus(errno, path);
  return MappedFile(Pages(static_cast<const std::byte*>(address), UnmapPages{file->size()}));
}

absl::StatusOr<FileCopy> FileCopy::Read(const std::string& path, int64_t max_bytes) {
  const absl::StatusOr<RegularFile> file = OpenRegular(path);
  if (!file.ok()) return file.status();
  const size_t size = file->size();
  if (file->info.st_size > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", size, " bytes, of at most ", max_bytes));
  }
  Pages pages;
  std::byte* target = nullptr;
  if (size > 0) {
    // Not from the allocator, which would keep the memory of a file that is needed once.
    void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED)
      return absl::ResourceExhaustedError(absl::StrCat(path, ": no memory for ", size, " bytes"));
    target = static_cast<std::byte*>(address);
    pages = Pages(target, UnmapPages{size});
  }
  const ssize_t count = ReadUpTo(file->fd.get(), absl::MakeSpan(target, size));
  if (count < 0) return absl::ErrnoToStatus(errno, path);

  // A writer at work would leave a mixture of two files here.
  struct stat after = {};
  std::byte next = {};
  const ssize_t more = pread(file->fd.get(), &next, 1, static_cast<off_t>(size));
  if (more < 0 || fstat(file->fd.get(), &after) != 0) return absl::ErrnoToStatus(errno, path);
  if (static_cast<size_t>(count) < size || more > 0 || after.st_size != file->info.st_size ||
      !SameTime(after.st_mtim, file->info.st_mtim)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": changed while it was read; put a file in place by renaming it"));
  }
  return FileCopy(std::move(pages));
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

std::string BehindLinks(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;  // as Linux; links may lead in circles
  std::error_code error;          // then it is no link, or none to be read
  fs::path at = path;
  for (int links = 0; links < kMostLinks; ++links) {
    const fs::path next = fs::read_symlink(at, error);
    if (error) break;
    at = at.parent_path() / next;
  }
  return at;
}

absl::Status CheckWritable(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return absl::ErrnoToStatus(EISDIR, path);
    // Not opened: the reader of a pipe would take the close for the end.
    return access(path.c_str(), W_OK) == 0 ? absl::OkStatus() : absl::ErrnoToStatus(errno, path);
  }
  const std::string created = BehindLinks(path);
  const FileDescriptor file(open(created.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0 && errno == EEXIST && stat(path.c_str(), &info) == 0) return absl::OkStatus();  // came meanwhile
  if (file.get() < 0 || unlink(created.c_str()) != 0) return absl::ErrnoToStatus(errno, path);
  return absl::OkStatus();
}

absl::Status NamePath(const absl::Status& status, const std::string& path) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

}  // namespace triad
