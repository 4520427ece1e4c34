// Dense arrays: views that borrow, and an owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/tensor/dtype.h"
#include "core/tensor/pieces.h"

namespace triad {

using Shape = absl::InlinedVector<int64_t, 4>;

// "[2, 16, 8, 64]".
std::string ToString(const Shape& shape);

// Bytes of a dense tensor, or nullopt when a dimension is negative or the product does not fit.
std::optional<int64_t> TensorBytes(DType dtype, const Shape& shape);

// Borrows a dense, row-major array. Assumes nothing about alignment.
struct TensorView {
  const std::byte* data = nullptr;
  const Pieces* pieces = nullptr;  // set: its bytes are these, and `data` is null
  DType dtype = DType::kF32;
  Shape shape;

  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
};

// Owns a dense, row-major array, aligned to 64 bytes. Movable; a copy is spelt CopyFrom, because it costs.
class Tensor {
 public:
  Tensor() = default;
  // Zero-filled. INVALID_ARGUMENT when a dimension is negative or the size does not fit; RESOURCE_EXHAUSTED when there
  // is no memory.
  static absl::StatusOr<Tensor> Zeros(DType dtype, Shape shape);
  static absl::StatusOr<Tensor> CopyFrom(const TensorView& view);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t element_count() const { return bytes_ / ByteSize(dtype_); }
  int64_t byte_size() const { return bytes_; }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  TensorView view() const { return {.data = data_.get(), .dtype = dtype_, .shape = shape_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };

  // As Zeros, but uninitialised.
  static absl::StatusOr<Tensor> Allocate(DType dtype, Shape shape);

  DType dtype_ = DType::kF32;
  Shape shape_ = {0};
  int64_t bytes_ = 0;
  std::unique_ptr<std::byte[], Free> data_;
};

}  // namespace triad
