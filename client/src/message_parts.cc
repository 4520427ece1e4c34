#include "client/src/message_parts.h"

#include "google/protobuf/io/coded_stream.h"
#include "triad/v1/tensor.pb.h"

namespace triad::client {
namespace {

using google::protobuf::io::CodedOutputStream;

// What stands before a field that is a message or bytes: tag and length, a varint each.
void AppendTagAndLength(int number, int64_t length, std::string& bytes) {
  constexpr int kTypeBits = 3;
  constexpr uint32_t kLengthDelimited = 2;
  constexpr size_t kLongestVarint = 10;
  uint8_t buffer[2 * kLongestVarint];
  uint8_t* end =
      CodedOutputStream::WriteTagToArray((static_cast<uint32_t>(number) << kTypeBits) | kLengthDelimited, buffer);
  end = CodedOutputStream::WriteVarint64ToArray(static_cast<uint64_t>(length), end);
  bytes.append(reinterpret_cast<const char*>(buffer), static_cast<size_t>(end - buffer));
}

}  // namespace

MessageParts::MessageParts(const google::protobuf::MessageLite& message)
    : own_bytes_(message.SerializeAsString()), byte_size_(static_cast<int64_t>(message.ByteSizeLong())) {}

void MessageParts::AddTensor(int number, const TensorView& tensor) {
  v1::Tensor head;
  head.set_dtype(static_cast<v1::DataType>(tensor.dtype));
  head.mutable_shape()->Assign(tensor.shape.begin(), tensor.shape.end());
  std::string head_bytes = head.SerializeAsString();
  const auto data_bytes = static_cast<int64_t>(tensor.data.size());
  // As every field of proto3, empty data is left out.
  if (data_bytes > 0) AppendTagAndLength(v1::Tensor::kDataFieldNumber, data_bytes, head_bytes);

  const size_t before = own_bytes_.size();
  AppendTagAndLength(number, static_cast<int64_t>(head_bytes.size()) + data_bytes, own_bytes_);
  own_bytes_ += head_bytes;
  if (data_bytes > 0) insertions_.push_back({.at = own_bytes_.size(), .tensor = &tensor});
  byte_size_ += static_cast<int64_t>(own_bytes_.size() - before) + data_bytes;
}

void MessageParts::WrapIn(const google::protobuf::MessageLite& envelope, int number) {
  std::string front = envelope.SerializeAsString();
  AppendTagAndLength(number, byte_size_, front);
  for (Insertion& insertion : insertions_) insertion.at += front.size();
  own_bytes_.insert(0, front);
  byte_size_ += static_cast<int64_t>(front.size());
}

}  // namespace triad::client
