// Files as bytes: mapped or copied for reading, written in one go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace triad {

// Whole pages of memory, given back to the system on destruction.
struct UnmapPages {
  size_t size;  // zero where there are none: unique_ptr value-initialises its deleter
  void operator()(const std::byte* address) const;
};
using Pages = std::unique_ptr<const std::byte[], UnmapPages>;

// A regular file, mapped read-only. Movable; bytes() stays valid until the owner dies, also across moves.
//
// The map is the file, not a copy: whoever overwrites the file changes what is read, and whoever truncates it makes the
// next read end the process (SIGBUS). Replace a file that may be mapped by renaming another one over it.
class MappedFile {
 public:
  // Blocks for the file system only. NOT_FOUND, PERMISSION_DENIED and so on as the system says; INVALID_ARGUMENT for
  // what is not a regular file. Messages name the path.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  absl::Span<const std::byte> bytes() const { return {map_.get(), map_.get_deleter().size}; }

 private:
  explicit MappedFile(Pages map) : map_(std::move(map)) {}

  Pages map_;  // null for an empty file, which cannot be mapped
};

// What a regular file held when it was read, in memory of its own: nothing that happens to the file later reaches these
// bytes. For a process that must survive whoever writes there. Movable; bytes() stays valid until the owner dies.
class FileCopy {
 public:
  // Blocks for the disk. As MappedFile::Open; also INVALID_ARGUMENT: more than `max_bytes`; FAILED_PRECONDITION: it
  // changed while it was read; RESOURCE_EXHAUSTED: no memory.
  static absl::StatusOr<FileCopy> Read(const std::string& path, int64_t max_bytes);

  absl::Span<const std::byte> bytes() const { return {pages_.get(), pages_.get_deleter().size}; }

 private:
  explicit FileCopy(Pages pages) : pages_(std::move(pages)) {}

  Pages pages_;  // null for an empty file
};

// Creates or replaces `path` with `pieces`, one after another. Errors as the system says, naming the path; the file may
// then be incomplete.
absl::Status WriteFile(const std::string& path, absl::Span<const absl::string_view> pieces);

// Where a file written at `path` would be: `path`, or what the symbolic links there lead to, also where nothing is yet.
std::string BehindLinks(const std::string& path);

// What WriteFile would answer before it has written anything, as far as it can be told. Changes nothing: what is at
// `path` stays as it is, and what is not there is created and removed again.
absl::Status CheckWritable(const std::string& path);

// `status` with "path: " before its message.
absl::Status NamePath(const absl::Status& status, const std::string& path);

}  // namespace triad
