#include "client/tools/tensor_bridge.h"

namespace triad::tools {

client::DataType ToClient(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return client::DataType::kFloat32;
    case DType::kBf16:
      return client::DataType::kBfloat16;
    case DType::kF16:
      return client::DataType::kFloat16;
    case DType::kBool:
      break;
  }
  return client::DataType::kBool;
}

DType FromClient(client::DataType dtype) {
  switch (dtype) {
    case client::DataType::kFloat32:
      return DType::kF32;
    case client::DataType::kBfloat16:
      return DType::kBf16;
    case client::DataType::kFloat16:
      return DType::kF16;
    case client::DataType::kBool:
      break;
  }
  return DType::kBool;
}

client::TensorView ToClient(const TensorView& view) {
  const auto bytes = static_cast<size_t>(TensorBytes(view.dtype, view.shape).value_or(0));
  return {ToClient(view.dtype), client::Shape(view.shape.begin(), view.shape.end()), {view.data, bytes}};
}

TensorView FromClient(const client::TensorView& view) {
  return {
      .data = view.data.data(), .dtype = FromClient(view.dtype), .shape = Shape(view.shape.begin(), view.shape.end())};
}

}  // namespace triad::tools
