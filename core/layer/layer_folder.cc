#include "core/layer/layer_folder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/layer/layer_spec_text.h"
#include "core/layer/layer_tensors.h"
#include "core/tensor/file_bytes.h"
#include "core/tensor/safetensors_file.h"

namespace triad {
namespace {

constexpr int64_t kMaxSpecBytes = int64_t{1} << 20;
// The header of weights.safetensors and whatever else small lies there, so that a tensor too many is refused by its
// name.
constexpr int64_t kSpareBytes = int64_t{32} << 20;
// Messages travel as metadata of at most 8 KiB, escaped; a file can hold names of megabytes.
constexpr size_t kMaxMessageBytes = 1024;

// The codes of LoadLayerFolder's contract; whatever else is wrong with a file, asking again will not mend it.
absl::Status AsLoadError(const absl::Status& status) {
  absl::StatusCode code = status.code();
  switch (code) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kInternal:
      break;
    default:
      code = absl::StatusCode::kFailedPrecondition;
  }
  const absl::string_view message = status.message();
  if (message.size() <= kMaxMessageBytes) return absl::Status(code, message);
  size_t end = kMaxMessageBytes;
  while (end > 0 && (message[end] & 0xc0) == 0x80) --end;  // not inside a UTF-8 character
  return absl::Status(code, absl::StrCat(message.substr(0, end), "..."));
}

// Bytes that the weights of `spec` take at most: FLOAT32, a bias for each projection. Fits: widths are bounded.
int64_t MaxWeightsBytes(const LayerSpec& spec) {
  const int64_t stacked = spec.query_width() + spec.key_width() + spec.value_width();
  const int64_t inputs = std::max(spec.model_dim, spec.key_input_dim());
  const int64_t elements = stacked * (inputs + 1) + spec.output_dim * (spec.mixed_width() + 1);
  return elements * ByteSize(DType::kF32) + kSpareBytes;
}

absl::StatusOr<LayerSpec> ReadSpec(const std::string& path) {
  const absl::StatusOr<FileCopy> file = FileCopy::Read(path, kMaxSpecBytes);
  if (!file.ok()) return file.status();
  absl::StatusOr<LayerSpec> spec =
      ParseLayerSpec({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
  if (!spec.ok()) return NamePath(spec.status(), path);
  return spec;
}

// The copy of the file is gone when this returns: what is read and what is packed of it are two copies enough.
absl::StatusOr<LayerTensors> ReadWeights(const std::string& path, const LayerSpec& spec) {
  const absl::StatusOr<FileCopy> file = FileCopy::Read(path, MaxWeightsBytes(spec));
  if (!file.ok()) return file.status();
  const absl::StatusOr<SafetensorsView> view = SafetensorsView::Parse(file->bytes());
  if (!view.ok()) return NamePath(view.status(), path);
  absl::StatusOr<LayerTensors> tensors = ReadLayerTensors(spec, *view);
  if (!tensors.ok()) return NamePath(tensors.status(), path);
  return tensors;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const HostedLayer>> LoadLayerFolder(const std::string& folder, InstructionSet isa) {
  absl::StatusOr<LayerSpec> spec = ReadSpec(folder + "/layer.textproto");
  if (!spec.ok()) return AsLoadError(spec.status());
  const absl::StatusOr<LayerTensors> tensors = ReadWeights(folder + "/weights.safetensors", *spec);
  if (!tensors.ok()) return AsLoadError(tensors.status());
  return HostedLayer::Create(*std::move(spec), *tensors, isa);
}

}  // namespace triad
