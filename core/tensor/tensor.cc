#include "core/tensor/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/dims.h"

namespace triad {
namespace {
constexpr int64_t kAlignment = 64;                                               // a cache line, and the widest vector
constexpr int64_t kMaxBytes = std::numeric_limits<int64_t>::max() - kAlignment;  // can still be rounded up
}  // namespace

std::string ToString(const Shape& shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

std::optional<int64_t> TensorBytes(DType dtype, const Shape& shape) {
  for (int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
  }
  const std::optional<int64_t> elements = CheckedProduct(shape);
  return elements ? CheckedMul(*elements, ByteSize(dtype)) : std::nullopt;
}

void Tensor::Free::operator()(std::byte* data) const { std::free(data); }

absl::StatusOr<Tensor> Tensor::Allocate(DType dtype, Shape shape) {
  const std::optional<int64_t> bytes = TensorBytes(dtype, shape);
  if (!bytes || *bytes > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape must have dimensions >= 0 whose product fits 64 bits; was ", ToString(shape)));
  }
  Tensor tensor;
  // An empty tensor owns a byte, so that its data is never null.
  const int64_t held = RoundUp(std::max<int64_t>(*bytes, 1), kAlignment);
  tensor.data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<size_t>(held))));
  if (tensor.data_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", *bytes, " bytes of a ", Name(dtype), " tensor ", ToString(shape)));
  }
  tensor.dtype_ = dtype;
  tensor.bytes_ = *bytes;
  tensor.shape_ = std::move(shape);
  return tensor;
}

absl::StatusOr<Tensor> Tensor::Zeros(DType dtype, Shape shape) {
  absl::StatusOr<Tensor> tensor = Allocate(dtype, std::move(shape));
  if (tensor.ok()) std::memset(tensor->data(), 0, static_cast<size_t>(tensor->byte_size()));
  return tensor;
}

absl::StatusOr<Tensor> Tensor::CopyFrom(const TensorView& view) {
  absl::StatusOr<Tensor> tensor = Allocate(view.dtype, view.shape);
  if (!tensor.ok() || tensor->byte_size() == 0) return tensor;
  if (view.pieces != nullptr) {
    view.pieces->CopyTo(0, tensor->byte_size(), tensor->data());
  } else {
    std::memcpy(tensor->data(), view.data, static_cast<size_t>(tensor->byte_size()));
  }
  return tensor;
}

}  // namespace triad
