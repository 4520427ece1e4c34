// Wire requests for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "triad/v1/attention.pb.h"

namespace triad {

struct RequestShape {
  int64_t batch = 1;
  int64_t q_len = 4;
  int64_t kv_len = 4;
  int64_t heads = 2;
  int64_t kv_heads = 2;
  int64_t head_dim = 8;
};

// FLOAT32 in layout TOKENS_HEADS, values normally distributed from `seed`.
v1::AttendRequest MakeRequest(const RequestShape& shape, uint64_t seed);

// One query, one head: a single work item of the reference and gate kernels.
v1::AttendRequest OneItemRequest(uint64_t seed = 1);

// A tensor of zeros.
v1::Tensor ZeroTensor(const std::vector<int64_t>& shape, v1::DataType dtype = v1::FLOAT32);

// A FLOAT32 tensor of values normally distributed from `seed`.
v1::Tensor NormalTensor(const std::vector<int64_t>& shape, uint64_t seed);

// The elements of a FLOAT32 tensor.
std::vector<float> Floats(const v1::Tensor& tensor);

}  // namespace triad
