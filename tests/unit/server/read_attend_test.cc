#include "server/read_attend.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/server_requests.h"
#include "tests/support/wire_pieces.h"

namespace triad {
namespace {

std::string Bytes(int64_t count, char first) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) bytes += static_cast<char>(first + i);
  return bytes;
}

v1::AttendRequest FullRequest() {
  v1::AttendRequest message;
  *message.mutable_query() = ZeroTensor({1, 1, 2, 4});
  *message.mutable_key() = ZeroTensor({1, 3, 2, 4});
  *message.mutable_value() = ZeroTensor({1, 3, 2, 4});
  *message.mutable_keep() = ZeroTensor({1, 1, 1, 3}, v1::BOOL);
  *message.mutable_bias() = ZeroTensor({1, 1, 1, 3});
  for (v1::Tensor* tensor : {message.mutable_query(), message.mutable_key(), message.mutable_value(),
                             message.mutable_keep(), message.mutable_bias()}) {
    tensor->set_data(Bytes(static_cast<int64_t>(tensor->data().size()), 'a'));
  }
  message.set_scale(0.25f);
  message.add_sinks(1);
  message.mutable_window()->set_left(3);
  message.mutable_key_lengths()->add_values(2);
  return message;
}

TEST(ReadAttendTest, KeysAndValuesStayInTheirPieces) {
  const v1::AttendRequest message = FullRequest();
  for (size_t piece_bytes : {1, 3, 50, 10000}) {
    const CutPieces wire = CutWire(message.SerializeAsString(), piece_bytes);
    v1::AttendRequest read;
    KeyValuePieces apart;
    ASSERT_TRUE(ReadAttend(wire.get(), read, apart));
    EXPECT_EQ(ToString(apart.key), message.key().data());
    EXPECT_EQ(ToString(apart.value), message.value().data());
    EXPECT_TRUE(read.key().data().empty() && read.value().data().empty());
    read.mutable_key()->set_data(message.key().data());
    read.mutable_value()->set_data(message.value().data());
    EXPECT_EQ(read.SerializeAsString(), message.SerializeAsString()) << "pieces of " << piece_bytes;
  }
}

TEST(ReadAttendTest, KeysAndValuesLieInTheWiresOwnMemory) {
  const std::string wire = FullRequest().SerializeAsString();
  Pieces pieces;
  pieces.Add(reinterpret_cast<const std::byte*>(wire.data()), static_cast<int64_t>(wire.size()));
  v1::AttendRequest read;
  KeyValuePieces apart;
  ASSERT_TRUE(ReadAttend(pieces, read, apart));
  const auto* key = reinterpret_cast<const char*>(apart.key.InPlace(0, apart.key.size()));
  EXPECT_TRUE(key > wire.data() && key < wire.data() + wire.size());
}

// A field in the shortest form, and its number and length in more bytes than they need.
std::string Field(int number, const std::string& value) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(value.size())} + value;
}
std::string LongTag(int number, const std::string& value) {
  return std::string{static_cast<char>(number << 3 | 2 | 0x80), '\0', static_cast<char>(value.size())} + value;
}
std::string LongLength(int number, const std::string& value) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(value.size() | 0x80), '\0'} + value;
}

TEST(ReadAttendTest, WhateverTheBytesAreTheGeneratedParserIsRight) {
  const std::string full = FullRequest().SerializeAsString();
  const std::string shape = {0x12, 1, 4};
  const std::string data = Field(v1::Tensor::kDataFieldNumber, "data");
  constexpr int kKey = v1::AttendRequest::kKeyFieldNumber;
  const std::string overlong(9, '\x80');
  const std::vector<std::string> wires = {
      "",
      full,
      full + full,
      Field(kKey, data) + Field(kKey, shape),
      Field(kKey, data + data),
      Field(kKey, ""),
      Field(kKey, Field(v1::Tensor::kDataFieldNumber, "")),
      LongTag(kKey, data),
      LongLength(kKey, data),
      Field(kKey, LongTag(v1::Tensor::kDataFieldNumber, "data")),
      Field(kKey, LongLength(v1::Tensor::kDataFieldNumber, "data")),
      Field(kKey, Field(15, "unknown") + data),
      Field(kKey, "\x0b\x08\x01\x0c" + data),  // an unknown group
      Field(kKey, "\x0b\x08\x01" + data),      // that does not end
      Field(kKey, "\x0c" + data),              // that only ends
      "\x0c",
      std::string(1, '\0'),
      Field(kKey, std::string(1, '\0') + data),
      std::string{kKey << 3 | 2, 100} + data,                                         // longer than the message
      Field(kKey, std::string{v1::Tensor::kDataFieldNumber << 3 | 2, 100} + "data"),  // longer than the tensor
      Field(kKey, std::string{v1::Tensor::kDataFieldNumber << 3 | 2} + overlong + '\x01'),
      std::string{kKey << 3 | 2} + std::string(4, '\xff') + '\x0f' + data,  // a negative length
      std::string{static_cast<char>(kKey << 3 | 2 | 0x80)} + overlong.substr(1) + '\x01' + data,
      std::string{kKey << 3, 5},  // a number where a tensor should be
      Field(kKey, std::string{v1::Tensor::kDataFieldNumber << 3, 5}),
  };
  for (size_t i = 0; i < wires.size(); ++i) {
    for (size_t piece_bytes : {1, 2, 1000}) {
      EXPECT_TRUE(ReadsAsParsed(wires[i], piece_bytes)) << "wire " << i << " in pieces of " << piece_bytes;
    }
  }
  const std::string large = std::string("\x9a\x06\x80\x80\x80\x01") + std::string(2 << 20, 'x');  // an unknown field
  EXPECT_TRUE(ReadsAsParsed(large + full, /*piece_bytes=*/65536));
  for (size_t end = 0; end < full.size(); ++end) {
    EXPECT_TRUE(ReadsAsParsed(full.substr(0, end), /*piece_bytes=*/7)) << "cut at " << end;
  }
}

}  // namespace
}  // namespace triad
