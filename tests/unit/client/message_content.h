// Tensors as a server sends them, and a look at what a message sets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "google/protobuf/message.h"
#include "triad/v1/attention.pb.h"

namespace triad::client {

// Makes `tensor` a FLOAT32 tensor of `shape`, and returns it.
inline v1::Tensor* FillTensor(v1::Tensor* tensor, const std::vector<int64_t>& shape) {
  int64_t bytes = 4;
  tensor->set_dtype(v1::FLOAT32);
  for (const int64_t extent : shape) {
    tensor->add_shape(extent);
    bytes *= extent;
  }
  tensor->set_data(std::string(bytes, '\1'));
  return tensor;
}

// How many fields of `message` are set.
inline int CountSetFields(const google::protobuf::Message& message) {
  std::vector<const google::protobuf::FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  return static_cast<int>(set.size());
}

}  // namespace triad::client
