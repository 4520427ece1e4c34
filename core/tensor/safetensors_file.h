// Hugging Face's .safetensors files: named tensors behind a JSON header (github.com/huggingface/safetensors).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/tensor/file_bytes.h"
#include "core/tensor/safetensors_header.h"
#include "core/tensor/tensor.h"

namespace triad {

// The tensors that lie in `file`, found and checked.
class SafetensorsView {
 public:
  // Borrows `file`, which outlives this view and the tensors found through it. Reads the header alone (16 MiB at most;
  // the format allows 100 MB), never the data. The tensors must fill the data exactly, without holes or overlaps, and
  // each have the bytes of its shape. INVALID_ARGUMENT names tensor and reason.
  static absl::StatusOr<SafetensorsView> Parse(absl::Span<const std::byte> file);

  // Borrows from the file; at any alignment. NOT_FOUND when there is no such tensor; UNIMPLEMENTED when its type is not
  // F32, BF16, F16 or BOOL.
  absl::StatusOr<TensorView> Find(absl::string_view name) const;

  bool contains(absl::string_view name) const { return header_.tensors.count(std::string(name)) > 0; }
  std::vector<std::string> names() const;  // sorted
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }

 private:
  SafetensorsView(SafetensorsHeader header, absl::Span<const std::byte> data)
      : header_(std::move(header)), data_(data) {}

  SafetensorsHeader header_;
  absl::Span<const std::byte> data_;  // what follows the header
};

// A mapped file and the tensors in it. Movable. MappedFile says what happens when somebody changes or truncates the
// file.
class SafetensorsFile {
 public:
  // Blocks for the file system only. Errors as MappedFile::Open and SafetensorsView::Parse; they name the path.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  // Valid as long as this object, also across moves.
  const SafetensorsView& view() const { return view_; }

 private:
  SafetensorsFile(MappedFile file, SafetensorsView view) : file_(std::move(file)), view_(std::move(view)) {}

  MappedFile file_;
  SafetensorsView view_;  // borrows from file_'s map
};

// Creates or replaces `path`. The bytes depend on names, tensors and metadata alone: tensors lie by width of element,
// widest first, so that each is aligned to its element, then by name. INVALID_ARGUMENT when a name is reserved or not
// UTF-8, or a shape is none; else as WriteFile.
absl::Status WriteSafetensors(const std::string& path, const std::map<std::string, TensorView>& tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace triad
