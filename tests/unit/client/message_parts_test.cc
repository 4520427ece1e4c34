#include "client/src/message_parts.h"

#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/unit/client/message_content.h"
#include "triad/v1/attention.pb.h"

namespace triad::client {
namespace {

using google::protobuf::util::MessageDifferencer;

TensorView Bytes(const std::vector<uint8_t>& values) {
  return TensorView::Bool(values, {static_cast<int64_t>(values.size())});
}

// What the generated API would have made of `view`.
v1::Tensor Generated(const TensorView& view) {
  v1::Tensor tensor;
  tensor.set_dtype(static_cast<v1::DataType>(view.dtype));
  tensor.mutable_shape()->Assign(view.shape.begin(), view.shape.end());
  tensor.set_data(view.data.data(), view.data.size());
  return tensor;
}

TEST(MessagePartsTest, ATensorIsWhatTheGeneratedApiWouldHaveMade) {
  const std::vector<uint8_t> values = {1, 0, 1};
  const TensorView keep = Bytes(values);
  v1::AttendRequest expected;
  expected.set_causal(true);
  MessageParts parts(expected);
  parts.AddTensor(v1::AttendRequest::kKeepFieldNumber, keep);
  *expected.mutable_keep() = Generated(keep);
  EXPECT_EQ(Joined(parts), expected.SerializeAsString()) << "one tensor, of the highest number: the order is the same";
}

// Lengths whose varints, and those of the tensor around them, gain a byte; and none.
TEST(MessagePartsTest, SizesAreExactWhereVarintsGrow) {
  for (const size_t size : {0,   1,   27,  28,   29,   30,    119,   120,   121,     122,    126,
                            127, 128, 129, 4090, 4096, 16370, 16383, 16384, 2097151, 2097152}) {
    const std::vector<uint8_t> values(size, 7);
    const TensorView view = Bytes(values);
    v1::AttendRequest expected;
    MessageParts parts(expected);
    parts.AddTensor(v1::AttendRequest::kQueryFieldNumber, view);
    *expected.mutable_query() = Generated(view);
    EXPECT_EQ(parts.byte_size(), static_cast<int64_t>(expected.ByteSizeLong())) << size << " bytes";
    EXPECT_EQ(Joined(parts), expected.SerializeAsString()) << size << " bytes";
  }
}

TEST(MessagePartsTest, ATensorOfNothingIsThereAndEmpty) {
  const TensorView empty;
  MessageParts parts{v1::AttendRequest()};
  parts.AddTensor(v1::AttendRequest::kValueFieldNumber, empty);
  EXPECT_TRUE(parts.insertions().empty());
  v1::AttendRequest expected;
  *expected.mutable_value() = Generated(empty);
  EXPECT_TRUE(MessageDifferencer::Equals(Parsed<v1::AttendRequest>(parts), expected));
}

TEST(MessagePartsTest, AnEnvelopeGoesFirst) {
  const std::vector<uint8_t> key(300, 1);
  const std::vector<uint8_t> value(20'000, 2);
  const TensorView key_view = Bytes(key);
  const TensorView value_view = Bytes(value);
  v1::AttendStreamRequest expected;
  expected.set_request_id(uint64_t{1} << 63);
  expected.mutable_timeout()->set_seconds(3);
  v1::AttendRequest inner;
  inner.set_return_lse(true);
  MessageParts parts(inner);
  parts.AddTensor(v1::AttendRequest::kKeyFieldNumber, key_view);
  parts.AddTensor(v1::AttendRequest::kValueFieldNumber, value_view);
  parts.WrapIn(expected, v1::AttendStreamRequest::kRequestFieldNumber);
  *inner.mutable_key() = Generated(key_view);
  *inner.mutable_value() = Generated(value_view);
  *expected.mutable_request() = inner;
  EXPECT_TRUE(MessageDifferencer::Equals(Parsed<v1::AttendStreamRequest>(parts), expected));
  EXPECT_EQ(parts.byte_size(), static_cast<int64_t>(expected.ByteSizeLong()));
}

TEST(MessagePartsTest, AnEnvelopeOfAnEmptyRequestHoldsIt) {
  MessageParts parts{v1::ForwardRequest()};
  parts.WrapIn(v1::ForwardStreamRequest(), v1::ForwardStreamRequest::kRequestFieldNumber);
  EXPECT_TRUE(Parsed<v1::ForwardStreamRequest>(parts).has_request());
}

}  // namespace
}  // namespace triad::client
