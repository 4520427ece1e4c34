#include "core/tensor/npy_file.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/base/dims.h"
#include "core/tensor/file_bytes.h"
#include "core/tensor/npy_header.h"

namespace triad {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are little-endian in memory");

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kNpyAlignment = 64;         // numpy's ARRAY_ALIGN
constexpr size_t kMaxHeaderBytes = 1 << 16;  // only structured types need more

// How an element lies in the file and what it becomes.
struct Element {
  char kind = 'f';  // numpy's: f float, i and u integers, b boolean, V opaque
  int64_t bytes = 4;
  bool big_endian = false;
  DType dtype = DType::kF32;  // what it becomes
  bool convert = false;       // true: the value is converted to FLOAT32; false: the bytes are the value
};

absl::StatusOr<Element> ParseDescr(absl::string_view descr, const NpyReadOptions& options) {
  const auto refuse = [descr](absl::string_view reason) {
    return absl::UnimplementedError(absl::StrCat("type '", descr, "' ", reason));
  };
  Element element;
  if (descr.size() < 3 || !absl::SimpleAtoi(descr.substr(2), &element.bytes)) return refuse("is not supported");
  const char order = descr[0];
  const absl::string_view type = descr.substr(1);
  element.kind = descr[1];
  element.big_endian = order == '>';
  // One byte has no order, and two opaque ones are bfloat16's little-endian bytes.
  const bool order_free = element.bytes == 1 || (type == "V2" && order == '|');
  if (order != '<' && order != '>' && !(order == '|' && order_free)) return refuse("names no byte order");

  if (type == "f4") return element;
  if (type == "f2") {
    element.dtype = DType::kF16;
    return element;
  }
  if (type == "b1" || (type == "u1" && options.accept_uint8_as_bool)) {
    element.dtype = DType::kBool;
    return element;
  }
  if (type == "V2" && !element.big_endian) {
    if (!options.accept_void_as_bf16) return refuse("may be bfloat16, but the file does not say so");
    element.dtype = DType::kBf16;
    return element;
  }
  for (absl::string_view convertible : {"f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"}) {
    if (type != convertible) continue;
    if (!options.convert_to_f32) return refuse("would have to be converted");
    element.convert = true;
    return element;
  }
  return refuse("is not supported");
}

// The bytes of one element as an unsigned number.
uint64_t LoadBits(const std::byte* address, const Element& element) {
  uint64_t bits = 0;
  for (int64_t i = 0; i < element.bytes; ++i) {
    const int64_t significance = element.big_endian ? element.bytes - 1 - i : i;
    bits |= std::to_integer<uint64_t>(address[i]) << (8 * significance);
  }
  return bits;
}

// The value of an element that is converted, or nullopt when it is finite and past FLOAT32's range.
std::optional<float> ToF32(uint64_t bits, const Element& element) {
  if (element.kind == 'u') return static_cast<float>(bits);
  if (element.kind == 'i') {
    const int64_t unused_bits = 64 - 8 * element.bytes;
    return static_cast<float>(static_cast<int64_t>(bits << unused_bits) >> unused_bits);
  }
  const auto value = std::bit_cast<double>(bits);
  const auto rounded = static_cast<float>(value);
  if (std::isinf(rounded) && std::isfinite(value)) return std::nullopt;
  return rounded;
}

// Walks a Fortran-ordered array, none of whose dimensions is 0, in row-major order.
class FortranWalk {
 public:
  explicit FortranWalk(const Shape& shape) : shape_(shape), strides_(shape.size()), index_(shape.size(), 0) {
    int64_t stride = 1;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      strides_[axis] = stride;
      stride *= shape[axis];
    }
  }

  // Where the current element lies, counted in elements; then moves on.
  int64_t Next() {
    const int64_t current = position_;
    for (size_t axis = shape_.size(); axis-- > 0;) {
      position_ += strides_[axis];
      if (++index_[axis] < shape_[axis]) break;
      position_ -= strides_[axis] * shape_[axis];
      index_[axis] = 0;
    }
    return current;
  }

 private:
  const Shape& shape_;
  Shape strides_;  // in elements
  Shape index_;    // of the current element
  int64_t position_ = 0;
};

absl::Status CopyElements(absl::Span<const std::byte> data, const Element& element, bool fortran_order,
                          Tensor& tensor) {
  const int64_t count = tensor.element_count();
  const int64_t target_bytes = ByteSize(tensor.dtype());
  FortranWalk walk(tensor.shape());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t source = fortran_order ? walk.Next() : i;
    const uint64_t bits = LoadBits(data.data() + source * element.bytes, element);
    std::byte* target = tensor.data() + i * target_bytes;
    if (!element.convert) {
      std::memcpy(target, &bits, static_cast<size_t>(target_bytes));
      continue;
    }
    const std::optional<float> value = ToF32(bits, element);
    if (!value) return absl::InvalidArgumentError(absl::StrCat("element ", i, " is past the range of float32"));
    std::memcpy(target, &*value, sizeof(float));
  }
  return absl::OkStatus();
}

// Splits `file` into header text and data.
absl::Status SplitFile(absl::string_view file, absl::string_view& header, absl::string_view& data) {
  if (!absl::ConsumePrefix(&file, kMagic) || file.size() < 2) return absl::InvalidArgumentError("not a .npy file");
  const int version = static_cast<unsigned char>(file[0]);
  if (version < 1 || version > 3 || file[1] != 0) {
    return absl::InvalidArgumentError(absl::StrCat("format version ", version, ".", static_cast<unsigned char>(file[1]),
                                                   " is not supported; 1.0, 2.0 and 3.0 are"));
  }
  file.remove_prefix(2);
  uint32_t header_bytes = 0;
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (file.size() < length_bytes) return absl::InvalidArgumentError("the file ends within its header");
  std::memcpy(&header_bytes, file.data(), length_bytes);
  file.remove_prefix(length_bytes);
  if (header_bytes > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a header of ", header_bytes, " bytes is refused; at most ", kMaxHeaderBytes));
  }
  if (header_bytes > file.size()) return absl::InvalidArgumentError("the file ends within its header");
  header = file.substr(0, header_bytes);
  data = file.substr(header_bytes);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Tensor> ParseNpy(absl::Span<const std::byte> file, const NpyReadOptions& options) {
  absl::string_view header_text, data;
  const absl::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (absl::Status status = SplitFile(text, header_text, data); !status.ok()) return status;
  const absl::StatusOr<NpyHeader> header = ParseNpyHeader(header_text);
  if (!header.ok()) return header.status();
  const absl::StatusOr<Element> element = ParseDescr(header->descr, options);
  if (!element.ok()) return element.status();

  const std::optional<int64_t> count = CheckedProduct(header->shape);
  const std::optional<int64_t> bytes = count ? CheckedMul(*count, element->bytes) : std::nullopt;
  if (!bytes || static_cast<uint64_t>(*bytes) != data.size()) {
    return absl::InvalidArgumentError(absl::StrCat("shape ", ToString(header->shape), " of ", element->bytes,
                                                   "-byte elements does not match the ", data.size(),
                                                   " bytes of data in the file"));
  }
  absl::StatusOr<Tensor> tensor = Tensor::Zeros(element->dtype, header->shape);
  if (!tensor.ok() || data.empty()) return tensor;
  if (!header->fortran_order && !element->big_endian && !element->convert) {
    std::memcpy(tensor->data(), data.data(), data.size());
    return tensor;
  }
  if (absl::Status status =
          CopyElements(file.subspan(file.size() - data.size()), *element, header->fortran_order, *tensor);
      !status.ok()) {
    return status;
  }
  return tensor;
}

absl::StatusOr<Tensor> ReadNpy(const std::string& path, const NpyReadOptions& options) {
  const absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<Tensor> tensor = ParseNpy(file->bytes(), options);
  if (!tensor.ok()) return NamePath(tensor.status(), path);
  return tensor;
}

std::string NpyPrefix(const TensorView& tensor) {
  absl::string_view descr = "<f4";
  switch (tensor.dtype) {
    case DType::kF32:
      descr = "<f4";
      break;
    case DType::kF16:
      descr = "<f2";
      break;
    case DType::kBf16:
      descr = "<V2";
      break;
    case DType::kBool:
      descr = "|b1";
      break;
  }
  std::string header = FormatNpyHeader({.descr = std::string(descr), .fortran_order = false, .shape = tensor.shape});
  constexpr size_t kBeforeHeader = kMagic.size() + 2 + 2;  // version, length of the header
  const size_t total = RoundUp(static_cast<int64_t>(kBeforeHeader + header.size() + 1), kNpyAlignment);
  header.resize(total - kBeforeHeader - 1, ' ');
  header.push_back('\n');
  const auto length = static_cast<uint16_t>(header.size());  // 32 dimensions of 20 digits fit easily
  return absl::StrCat(kMagic, absl::string_view("\x01\x00", 2),
                      absl::string_view(reinterpret_cast<const char*>(&length), sizeof(length)), header);
}

absl::Status WriteNpy(const std::string& path, const TensorView& tensor) {
  const std::optional<int64_t> bytes = TensorBytes(tensor.dtype, tensor.shape);
  if (!bytes)
    return absl::InvalidArgumentError(absl::StrCat(path, ": no tensor has the shape ", ToString(tensor.shape)));
  const absl::string_view data(reinterpret_cast<const char*>(tensor.data), static_cast<size_t>(*bytes));
  return WriteFile(path, {NpyPrefix(tensor), data});
}

}  // namespace triad
