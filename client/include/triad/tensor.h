// Tensors as the client takes and gives them: views that borrow, and answers that own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace triad::client {

// Element types of the wire (triad.v1.DataType has the same numbers).
enum class DataType {
  kFloat32 = 1,   // IEEE 754 binary32
  kBfloat16 = 2,  // upper half of binary32
  kFloat16 = 3,   // IEEE 754 binary16
  kBool = 4,      // one byte: 0 is false, anything else true
};

// Bytes of one element; 0 for a value that is no DataType.
int64_t ByteSize(DataType dtype);

// "FLOAT32", "BFLOAT16", "FLOAT16", "BOOL"; "UNKNOWN" for a value that is no DataType.
absl::string_view Name(DataType dtype);

// Extent of each dimension, outermost first.
using Shape = std::vector<int64_t>;

// Borrows a dense, row-major, little-endian array; the bytes may have any alignment. What is borrowed must stay as it
// is until the function that took the view says it is done with it. Cheap to copy. Nothing is checked here: a call that
// is given a view whose bytes do not match its shape returns INVALID_ARGUMENT.
struct TensorView {
  DataType dtype = DataType::kFloat32;
  Shape shape = {};
  absl::Span<const std::byte> data = {};

  static TensorView Float32(absl::Span<const float> values, Shape shape) {
    return Of(DataType::kFloat32, values, std::move(shape));
  }
  // `bits` holds bfloat16 bit patterns.
  static TensorView Bfloat16(absl::Span<const uint16_t> bits, Shape shape) {
    return Of(DataType::kBfloat16, bits, std::move(shape));
  }
  // `bits` holds binary16 bit patterns.
  static TensorView Float16(absl::Span<const uint16_t> bits, Shape shape) {
    return Of(DataType::kFloat16, bits, std::move(shape));
  }
  // A byte each, 0 = false.
  static TensorView Bool(absl::Span<const uint8_t> values, Shape shape) {
    return Of(DataType::kBool, values, std::move(shape));
  }

 private:
  template <class T>
  static TensorView Of(DataType dtype, absl::Span<const T> values, Shape shape) {
    return {dtype, std::move(shape),
            absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T))};
  }
};

// An array that owns its bytes: dense, row-major, little-endian. Moving is cheap and invalidates spans into it; a copy
// copies the bytes.
class Tensor {
 public:
  Tensor() = default;
  // Takes `data` as it is; the caller vouches that its size is that of `shape`.
  Tensor(DataType dtype, Shape shape, std::string data)
      : dtype_(dtype), shape_(std::move(shape)), data_(std::move(data)) {}

  DataType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  absl::Span<const std::byte> data() const {
    return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(data_.data()), data_.size());
  }
  // Borrows from this tensor.
  TensorView view() const { return {dtype_, shape_, data()}; }

  // The elements in place. Empty unless dtype() is kFloat32.
  absl::Span<const float> float32() const;
  // The elements of any type, widened exactly into a new array. kBool gives 0 and 1.
  std::vector<float> CopyToFloat32() const;
  // Gives the bytes away and leaves the tensor without any.
  std::string ReleaseData() { return std::exchange(data_, std::string()); }

 private:
  DataType dtype_ = DataType::kFloat32;
  Shape shape_ = {0};
  std::string data_;
};

}  // namespace triad::client
