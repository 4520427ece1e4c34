#include "tests/support/server_requests.h"

#include <cstring>
#include <random>

namespace triad {
namespace {

void Fill(std::mt19937_64& random, const std::vector<int64_t>& shape, v1::Tensor& tensor) {
  tensor = ZeroTensor(shape);
  std::normal_distribution<float> normal;
  std::string& data = *tensor.mutable_data();
  for (size_t offset = 0; offset < data.size(); offset += sizeof(float)) {
    const float value = normal(random);
    std::memcpy(data.data() + offset, &value, sizeof(value));
  }
}

}  // namespace

v1::AttendRequest MakeRequest(const RequestShape& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  v1::AttendRequest request;
  Fill(random, {shape.batch, shape.q_len, shape.heads, shape.head_dim}, *request.mutable_query());
  Fill(random, {shape.batch, shape.kv_len, shape.kv_heads, shape.head_dim}, *request.mutable_key());
  Fill(random, {shape.batch, shape.kv_len, shape.kv_heads, shape.head_dim}, *request.mutable_value());
  return request;
}

v1::AttendRequest OneItemRequest(uint64_t seed) {
  return MakeRequest({.q_len = 1, .kv_len = 3, .heads = 1, .kv_heads = 1}, seed);
}

v1::Tensor ZeroTensor(const std::vector<int64_t>& shape, v1::DataType dtype) {
  v1::Tensor tensor;
  tensor.set_dtype(dtype);
  size_t bytes = dtype == v1::BOOL ? 1 : dtype == v1::FLOAT32 ? 4 : 2;
  for (int64_t dim : shape) {
    tensor.add_shape(dim);
    bytes *= static_cast<size_t>(dim);
  }
  tensor.mutable_data()->resize(bytes);
  return tensor;
}

v1::Tensor NormalTensor(const std::vector<int64_t>& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  v1::Tensor tensor;
  Fill(random, shape, tensor);
  return tensor;
}

std::vector<float> Floats(const v1::Tensor& tensor) {
  std::vector<float> values(tensor.data().size() / sizeof(float));
  std::memcpy(values.data(), tensor.data().data(), values.size() * sizeof(float));
  return values;
}

}  // namespace triad
