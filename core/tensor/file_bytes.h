// Files as bytes: mapped for reading, written in one go.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace triad {

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
  struct Unmap {
    size_t size;  // zero where there is no map: unique_ptr value-initialises its deleter
    void operator()(const std::byte* address) const;
  };
  using Map = std::unique_ptr<const std::byte[], Unmap>;

  explicit MappedFile(Map map) : map_(std::move(map)) {}

  Map map_;  // null for an empty file, which cannot be mapped
};

// Creates or replaces `path` with `pieces`, one after another. Errors as the system says, naming the path; the file may
// then be incomplete.
absl::Status WriteFile(const std::string& path, absl::Span<const absl::string_view> pieces);

// `status` with "path: " before its message.
absl::Status NamePath(const absl::Status& status, const std::string& path);

}  // namespace triad
