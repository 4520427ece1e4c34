// Tensors as a server sends them, requests as it reads them, and a look at what a message sets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/src/message_parts.h"
#include "client/src/message_slices.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
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

// The bytes that `parts` stand for.
inline std::string Joined(const MessageParts& parts) {
  std::string bytes;
  size_t done = 0;
  for (const MessageParts::Insertion& insertion : parts.insertions()) {
    const auto data = insertion.tensor->data;
    absl::StrAppend(&bytes, parts.own_bytes().substr(done, insertion.at - done),
                    absl::string_view(reinterpret_cast<const char*>(data.data()), data.size()));
    done = insertion.at;
  }
  absl::StrAppend(&bytes, parts.own_bytes().substr(done));
  return bytes;
}
inline std::string Joined(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  EXPECT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
  return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

// What a server's generated parser makes of `parts`, which have no byte too many for it.
template <class Message>
Message Parsed(const MessageParts& parts) {
  const std::string bytes = Joined(ToByteBuffer(parts));
  Message message;
  EXPECT_TRUE(message.ParseFromString(bytes));
  EXPECT_EQ(message.ByteSizeLong(), bytes.size()) << "a field stands twice, or is unknown";
  EXPECT_EQ(parts.byte_size(), static_cast<int64_t>(bytes.size()));
  return message;
}

// How many fields of `message` are set.
inline int CountSetFields(const google::protobuf::Message& message) {
  std::vector<const google::protobuf::FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  return static_cast<int>(set.size());
}

}  // namespace triad::client
