#include "server/decode_forward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/server_requests.h"

namespace triad {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMaxForwardBatch = 4;

v1::ForwardRequest GoodForward() {
  v1::ForwardRequest message;
  message.set_layer("minilm/0");
  *message.mutable_input() = ZeroTensor({1, 2, 3}, v1::FLOAT16);
  return message;
}

// INVALID_ARGUMENT with `words`.
void ExpectRefused(const v1::ForwardRequest& message, const std::string& words) {
  const absl::Status status = DecodeForward(message, kMaxForwardBatch).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(words));
}

TEST(DecodeForwardTest, BorrowsTheMessagesBytes) {
  const v1::ForwardRequest message = GoodForward();
  const auto decoded = DecodeForward(message, kMaxForwardBatch);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->layer.data(), message.layer().data());
  EXPECT_EQ(static_cast<const void*>(decoded->request.input.data), message.input().data().data());
  EXPECT_THAT(decoded->request.input.shape, ElementsAre(1, 2, 3));
  EXPECT_EQ(decoded->request.input.dtype, DType::kF16);
}

TEST(DecodeForwardTest, KeepsUnsetApartFromEmpty) {
  v1::ForwardRequest message = GoodForward();
  const auto unset = DecodeForward(message, kMaxForwardBatch);
  EXPECT_EQ(unset->version, std::nullopt);
  EXPECT_FALSE(unset->request.lengths.has_value());
  EXPECT_FALSE(unset->request.context.has_value());
  EXPECT_FALSE(unset->request.position_offsets.has_value());
  message.mutable_lengths();
  message.mutable_position_offsets();
  const auto set = DecodeForward(message, kMaxForwardBatch);
  EXPECT_TRUE(set->request.lengths->empty());
  EXPECT_TRUE(set->request.position_offsets->empty());
}

TEST(DecodeForwardTest, CarriesEveryOption) {
  v1::ForwardRequest message = GoodForward();
  message.set_version(7);
  message.set_layout(v1::PACKED);
  message.mutable_lengths()->add_values(2);
  *message.mutable_context() = ZeroTensor({1, 1, 5}, v1::FLOAT16);
  message.mutable_context_lengths()->add_values(1);
  *message.mutable_keep() = ZeroTensor({1, 1, 1, 5}, v1::BOOL);
  *message.mutable_bias() = ZeroTensor({1, 1, 1, 5}, v1::FLOAT32);
  message.mutable_position_offsets()->add_values(9);
  message.set_return_lse(true);
  message.set_return_weights(true);
  message.set_priority(v1::LOW);
  const auto decoded = DecodeForward(message, kMaxForwardBatch);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const ForwardRequest& request = decoded->request;
  EXPECT_EQ(decoded->version, 7);
  EXPECT_EQ(request.layout, Layout::kPacked);
  EXPECT_THAT(*request.lengths, ElementsAre(2));
  EXPECT_THAT(request.context->shape, ElementsAre(1, 1, 5));
  EXPECT_THAT(*request.context_lengths, ElementsAre(1));
  EXPECT_EQ(request.keep->dtype, DType::kBool);
  EXPECT_EQ(request.bias->dtype, DType::kF32);
  EXPECT_THAT(*request.position_offsets, ElementsAre(9));
  EXPECT_TRUE(request.return_lse && request.return_weights);
  EXPECT_EQ(decoded->priority, Priority::kLow);
}

TEST(DecodeForwardTest, NamesWhatIsMissingOrMalformed) {
  v1::ForwardRequest message = GoodForward();
  message.clear_layer();
  ExpectRefused(message, "layer must");
  message.set_layer("../../etc");
  ExpectRefused(message, "\"../../etc\"");
  message = GoodForward();
  message.set_version(0);
  ExpectRefused(message, "version must be > 0");
  message = GoodForward();
  message.clear_input();
  ExpectRefused(message, "input must be given");
  message = GoodForward();
  message.mutable_context();
  ExpectRefused(message, "context.dtype");
  message = GoodForward();
  message.mutable_input()->mutable_data()->pop_back();
  ExpectRefused(message, "input.data");
}

TEST(DecodeForwardTest, BoundsEveryLengthsField) {
  for (const char* field : {"lengths", "context_lengths", "position_offsets"}) {
    v1::ForwardRequest message = GoodForward();
    const auto* descriptor = message.GetDescriptor()->FindFieldByName(field);
    auto& lengths = static_cast<v1::Lengths&>(*message.GetReflection()->MutableMessage(&message, descriptor));
    for (int64_t i = 0; i <= kMaxForwardBatch; ++i) lengths.add_values(1);
    ExpectRefused(message, field);
  }
}

TEST(DecodeForwardTest, RefusesWhatItDoesNotKnow) {
  v1::ForwardRequest message = GoodForward();
  message.GetReflection()->MutableUnknownFields(&message)->AddVarint(77, 1);
  EXPECT_TRUE(absl::IsUnimplemented(DecodeForward(message, kMaxForwardBatch).status()));
  message = GoodForward();
  message.set_priority(static_cast<v1::Priority>(9));
  EXPECT_THAT(std::string(DecodeForward(message, kMaxForwardBatch).status().message()), HasSubstr("priority"));
}

}  // namespace
}  // namespace triad
