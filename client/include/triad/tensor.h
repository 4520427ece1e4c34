// Tensors as the client takes and gives them: views that borrow or share, and answers that own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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

// A dense, row-major, little-endian array of somebody else's; the bytes may have any alignment. Cheap to copy. Nothing
// is checked here: a call that is given a view whose bytes do not match its shape returns INVALID_ARGUMENT.
//
// Without an owner the array is borrowed: it must stay as it is until the function that took the view says it is done
// with it, and sending copies it once. With an owner it is sent from where it lies:
//
//   auto keys = std::make_shared<std::vector<float>>(...);
//   request.key = TensorView::Float32(*keys, {1, 4096, 8, 64}, keys);
struct TensorView {
  DataType dtype = DataType::kFloat32;
  Shape shape = {};
  absl::Span<const std::byte> data = {};
  // Set: keeps `data` alive, and whoever holds it lets `data` be as it is. A call holds it for as long as the transport
  // reads from there, which after a cancel or a deadline may be longer than the call; so it may be let go of last, and
  // what it owns destroyed, on a thread of gRPC's: the destructor must not block. (Small arrays are copied even so.)
  std::shared_ptr<const void> owner = nullptr;

  static TensorView Float32(absl::Span<const float> values, Shape shape, std::shared_ptr<const void> owner = nullptr) {
    return Of(DataType::kFloat32, values, std::move(shape), std::move(owner));
  }
  // `bits` holds bfloat16 bit patterns.
  static TensorView Bfloat16(absl::Span<const uint16_t> bits, Shape shape,
                             std::shared_ptr<const void> owner = nullptr) {
    return Of(DataType::kBfloat16, bits, std::move(shape), std::move(owner));
  }
  // `bits` holds binary16 bit patterns.
  static TensorView Float16(absl::Span<const uint16_t> bits, Shape shape, std::shared_ptr<const void> owner = nullptr) {
    return Of(DataType::kFloat16, bits, std::move(shape), std::move(owner));
  }
  // A byte each, 0 = false.
  static TensorView Bool(absl::Span<const uint8_t> values, Shape shape, std::shared_ptr<const void> owner = nullptr) {
    return Of(DataType::kBool, values, std::move(shape), std::move(owner));
  }

 private:
  template <class T>
  static TensorView Of(DataType dtype, absl::Span<const T> values, Shape shape, std::shared_ptr<const void> owner) {
    return {dtype, std::move(shape),
            absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)),
            std::move(owner)};
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
  // Shares `tensor`, so that an answer can be sent on without a copy.
  static TensorView Share(const std::shared_ptr<const Tensor>& tensor) {
    return {tensor->dtype_, tensor->shape_, tensor->data(), tensor};
  }

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
