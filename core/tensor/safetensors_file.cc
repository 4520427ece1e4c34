#include "core/tensor/safetensors_file.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/dims.h"

namespace triad {
namespace {

constexpr uint64_t kMaxSafetensorsHeaderBytes = uint64_t{16} << 20;
constexpr int64_t kDataAlignment = 64;  // where data begins in files that we write
constexpr size_t kLengthBytes = 8;      // the header's length, before it

struct TypeName {
  absl::string_view name;
  std::optional<DType> dtype;  // unset: not ours, but its size can be checked
  int64_t element_bytes;
};

// Sub-byte types and what the format adds later are not here: their sizes are not checked until they are asked for, and
// refused.
constexpr TypeName kTypes[] = {
    {"F32", DType::kF32, 4},  {"BF16", DType::kBf16, 2},    {"F16", DType::kF16, 2},      {"BOOL", DType::kBool, 1},
    {"F64", std::nullopt, 8}, {"I64", std::nullopt, 8},     {"U64", std::nullopt, 8},     {"I32", std::nullopt, 4},
    {"U32", std::nullopt, 4}, {"I16", std::nullopt, 2},     {"U16", std::nullopt, 2},     {"I8", std::nullopt, 1},
    {"U8", std::nullopt, 1},  {"F8_E4M3", std::nullopt, 1}, {"F8_E5M2", std::nullopt, 1},
};

const TypeName* FindType(absl::string_view name) {
  const auto* type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [name](const TypeName& t) { return t.name == name; });
  return type == std::end(kTypes) ? nullptr : type;
}

absl::string_view FormatName(DType dtype) {
  for (const TypeName& type : kTypes) {
    if (type.dtype == dtype) return type.name;
  }
  return "";
}

absl::Status CheckSize(const std::string& name, const SafetensorsEntry& entry) {
  if (entry.begin > entry.end) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "': data_offsets [", entry.begin, ", ", entry.end, "] run backwards"));
  }
  const TypeName* type = FindType(entry.dtype);
  if (type == nullptr) return absl::OkStatus();
  const std::optional<int64_t> count = CheckedProduct(entry.shape);
  const std::optional<int64_t> bytes = count ? CheckedMul(*count, type->element_bytes) : std::nullopt;
  if (bytes == entry.end - entry.begin) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", name, "': ", entry.end - entry.begin, " bytes do not hold shape ",
                                                 ToString(entry.shape), " of ", entry.dtype));
}

// Refuses holes, overlaps and what lies outside `data_bytes`.
absl::Status CheckPlaces(const SafetensorsHeader& header, int64_t data_bytes) {
  using Named = std::pair<const std::string, SafetensorsEntry>;
  std::vector<const Named*> by_place;
  for (const Named& named : header.tensors) by_place.push_back(&named);
  std::sort(by_place.begin(), by_place.end(), [](const Named* a, const Named* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  int64_t end = 0;
  for (const Named* named : by_place) {
    const SafetensorsEntry& entry = named->second;
    if (entry.begin != end || entry.end > data_bytes) {
      const absl::string_view fault = entry.end > data_bytes ? "reaches past the end of the file"
                                      : entry.begin < end    ? "overlaps the tensor before it"
                                                             : "leaves a hole before it";
      return absl::InvalidArgumentError(
          absl::StrCat("'", named->first, "': at [", entry.begin, ", ", entry.end, "] it ", fault));
    }
    end = entry.end;
  }
  if (end == data_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the last ", data_bytes - end, " bytes belong to no tensor"));
}

}  // namespace

absl::StatusOr<SafetensorsView> SafetensorsView::Parse(absl::Span<const std::byte> file) {
  uint64_t header_bytes = 0;
  if (file.size() < kLengthBytes) return absl::InvalidArgumentError("not a .safetensors file: too short");
  std::memcpy(&header_bytes, file.data(), kLengthBytes);
  file.remove_prefix(kLengthBytes);
  if (header_bytes > kMaxSafetensorsHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat("not a .safetensors file, or a header of ", header_bytes,
                                                   " bytes, which is past the limit of ", kMaxSafetensorsHeaderBytes));
  }
  if (header_bytes > file.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file ends within its header of ", header_bytes, " bytes; it has ", file.size()));
  }
  absl::StatusOr<SafetensorsHeader> header =
      ParseSafetensorsHeader({reinterpret_cast<const char*>(file.data()), static_cast<size_t>(header_bytes)});
  if (!header.ok()) return header.status();
  file.remove_prefix(header_bytes);

  for (const auto& [name, entry] : header->tensors) {
    if (absl::Status status = CheckSize(name, entry); !status.ok()) return status;
  }
  if (absl::Status status = CheckPlaces(*header, static_cast<int64_t>(file.size())); !status.ok()) return status;
  return SafetensorsView(*std::move(header), file);
}

absl::StatusOr<TensorView> SafetensorsView::Find(absl::string_view name) const {
  const auto found = header_.tensors.find(std::string(name));
  if (found == header_.tensors.end()) return absl::NotFoundError(absl::StrCat("no tensor '", name, "'"));
  const SafetensorsEntry& entry = found->second;
  const TypeName* type = FindType(entry.dtype);
  if (type == nullptr || !type->dtype) {
    return absl::UnimplementedError(
        absl::StrCat("'", name, "': type ", entry.dtype, " is not supported; F32, BF16, F16 and BOOL are"));
  }
  return TensorView{.data = data_.data() + entry.begin, .dtype = *type->dtype, .shape = entry.shape};
}

std::vector<std::string> SafetensorsView::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : header_.tensors) names.push_back(name);
  return names;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<SafetensorsView> view = SafetensorsView::Parse(file->bytes());
  if (!view.ok()) return NamePath(view.status(), path);
  return SafetensorsFile(*std::move(file), *std::move(view));
}

absl::Status WriteSafetensors(const std::string& path, const std::map<std::string, TensorView>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<const std::pair<const std::string, TensorView>*> by_width;
  for (const auto& named : tensors) by_width.push_back(&named);
  std::stable_sort(by_width.begin(), by_width.end(),
                   [](const auto* a, const auto* b) { return ByteSize(a->second.dtype) > ByteSize(b->second.dtype); });

  SafetensorsHeader header{.tensors = {}, .metadata = metadata};
  std::vector<absl::string_view> pieces(2);  // the length and the header; then the data
  int64_t end = 0;
  for (const auto* named : by_width) {
    const auto& [name, tensor] = *named;
    const std::optional<int64_t> bytes = TensorBytes(tensor.dtype, tensor.shape);
    if (!bytes || name == "__metadata__") {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": '", name, "' of shape ", ToString(tensor.shape), " cannot be written"));
    }
    header.tensors[name] = {
        .dtype = std::string(FormatName(tensor.dtype)), .shape = tensor.shape, .begin = end, .end = end + *bytes};
    end += *bytes;
    pieces.emplace_back(reinterpret_cast<const char*>(tensor.data), static_cast<size_t>(*bytes));
  }
  absl::StatusOr<std::string> json = FormatSafetensorsHeader(header);
  if (!json.ok()) return NamePath(json.status(), path);
  const int64_t unpadded = static_cast<int64_t>(kLengthBytes + json->size());
  json->append(static_cast<size_t>(RoundUp(unpadded, kDataAlignment) - unpadded), ' ');
  const uint64_t length = json->size();
  pieces[0] = {reinterpret_cast<const char*>(&length), kLengthBytes};
  pieces[1] = *json;
  return WriteFile(path, pieces);
}

}  // namespace triad
