#include "client/src/message_slices.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/src/callback_scope.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "tests/unit/client/message_content.h"
#include "triad/v1/attention.pb.h"

namespace triad::client {
namespace {

constexpr size_t kLarge = 100'000;

std::vector<grpc::Slice> SlicesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  return slices;
}

// Slices that lie within `bytes`.
int CountWithin(const grpc::ByteBuffer& buffer, const std::vector<uint8_t>& bytes) {
  int count = 0;
  for (const grpc::Slice& slice : SlicesOf(buffer)) {
    const uint8_t* begin = slice.begin();
    if (begin >= bytes.data() && begin < bytes.data() + bytes.size()) ++count;
  }
  return count;
}

// A request with two tensors: `query` and `value`.
MessageParts TwoTensors(const TensorView& query, const TensorView& value) {
  v1::AttendRequest message;
  message.set_causal(true);
  MessageParts parts(message);
  parts.AddTensor(v1::AttendRequest::kQueryFieldNumber, query);
  parts.AddTensor(v1::AttendRequest::kValueFieldNumber, value);
  return parts;
}

class MessageSlicesTest : public ::testing::Test {
 protected:
  using Array = std::vector<uint8_t>;
  using Shared = std::shared_ptr<const Array>;

  static Shared MakeArray(size_t size, uint8_t value) { return std::make_shared<const Array>(size, value); }
  static TensorView Borrowed(const Array& array) {
    return TensorView::Bool(array, {static_cast<int64_t>(array.size())});
  }
  static TensorView Owned(const Shared& array) {
    return TensorView::Bool(*array, {static_cast<int64_t>(array->size())}, array);
  }
};

TEST_F(MessageSlicesTest, BytesAreTheSameWhoeverOwnsThem) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{8191}, size_t{8192}, kLarge}) {
    const Shared a = MakeArray(size, 1);
    const Shared b = MakeArray(kLarge, 2);
    const TensorView views[] = {Borrowed(*a), Owned(a)};
    const TensorView others[] = {Borrowed(*b), Owned(b)};
    for (const TensorView& query : views) {
      for (const TensorView& value : others) {
        const MessageParts parts = TwoTensors(query, value);
        const grpc::ByteBuffer buffer = ToByteBuffer(parts);
        EXPECT_EQ(static_cast<int64_t>(buffer.Length()), parts.byte_size());
        EXPECT_EQ(Joined(buffer), Joined(parts)) << size << " bytes";
      }
    }
  }
}

TEST_F(MessageSlicesTest, WhatIsBorrowedIsCopiedIntoOneSlice) {
  Array a(kLarge, 1);
  Array b(kLarge, 2);
  const TensorView query = Borrowed(a);
  const TensorView value = Borrowed(b);
  const MessageParts parts = TwoTensors(query, value);
  const std::string before = Joined(parts);
  const grpc::ByteBuffer buffer = ToByteBuffer(parts);
  EXPECT_EQ(SlicesOf(buffer).size(), 1u);
  std::memset(a.data(), 9, a.size());
  std::memset(b.data(), 9, b.size());
  EXPECT_EQ(Joined(buffer), before) << "the caller's memory is the caller's again";
}

TEST_F(MessageSlicesTest, WhatHasAnOwnerStaysWhereItIs) {
  const Shared a = MakeArray(kLarge, 1);
  const TensorView query = Owned(a);
  const Array b(kLarge, 2);
  const TensorView value = Borrowed(b);
  const grpc::ByteBuffer buffer = ToByteBuffer(TwoTensors(query, value));
  EXPECT_EQ(CountWithin(buffer, *a), 1);
  EXPECT_EQ(CountWithin(buffer, b), 0);
}

TEST_F(MessageSlicesTest, SmallTensorsAreCopiedEvenWithAnOwner) {
  const Shared a = MakeArray(16, 1);
  const TensorView query = Owned(a);
  const grpc::ByteBuffer buffer = ToByteBuffer(TwoTensors(query, query));
  EXPECT_EQ(CountWithin(buffer, *a), 0);
  EXPECT_EQ(SlicesOf(buffer).size(), 1u);
}

TEST_F(MessageSlicesTest, TheOwnerIsHeldByEveryCopyUntilTheLast) {
  Shared array = MakeArray(kLarge, 1);
  const std::weak_ptr<const Array> watched = array;
  auto first = std::make_unique<grpc::ByteBuffer>();
  {
    const TensorView query = Owned(array);
    *first = ToByteBuffer(TwoTensors(query, query));
  }
  auto again = std::make_unique<grpc::ByteBuffer>(*first);  // as a retry, or the transport
  const std::string bytes = Joined(*first);
  array.reset();
  first.reset();
  ASSERT_FALSE(watched.expired());
  EXPECT_EQ(Joined(*again), bytes);
  again.reset();
  EXPECT_TRUE(watched.expired());
}

// What an owner's destructor does runs as a callback of gRPC's: see CallbackScope.
TEST_F(MessageSlicesTest, OwnersAreLetGoWithinACallbackScope) {
  bool was_active = false;
  const Array bytes(kLarge);
  std::shared_ptr<const void> owner(&bytes, [&was_active](const void*) { was_active = CallbackScope::IsActive(); });
  TensorView query = Borrowed(bytes);
  query.owner = std::move(owner);
  {
    const grpc::ByteBuffer buffer = ToByteBuffer(TwoTensors(query, query));
    query.owner.reset();
  }
  EXPECT_TRUE(was_active);
}

TEST_F(MessageSlicesTest, AnEmptyMessageIsOne) {
  grpc::ByteBuffer buffer = ToByteBuffer(MessageParts{v1::GetServerInfoRequest()});
  EXPECT_TRUE(buffer.Valid());
  EXPECT_EQ(buffer.Length(), 0u);
}

}  // namespace
}  // namespace triad::client
