#include "server/decode_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/decode_fields.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMaxBatch = 4;

v1::AttendRequest GoodRequest() {
  v1::AttendRequest message;
  *message.mutable_query() = ZeroTensor({1, 2, 3, 4}, v1::BFLOAT16);
  *message.mutable_key() = ZeroTensor({1, 5, 3, 4}, v1::BFLOAT16);
  *message.mutable_value() = ZeroTensor({1, 5, 3, 4}, v1::BFLOAT16);
  return message;
}

TEST(DecodeAttendTest, BorrowsTheMessagesBytes) {
  const v1::AttendRequest message = GoodRequest();
  const auto decoded = DecodeAttend(message, kMaxBatch);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(static_cast<const void*>(decoded->request.key.data), message.key().data().data());
  EXPECT_EQ(decoded->request.key.dtype, DType::kBf16);
  EXPECT_THAT(decoded->request.key.shape, ElementsAre(1, 5, 3, 4));
}

TEST(DecodeAttendTest, KeepsUnsetApartFromZero) {
  v1::AttendRequest message = GoodRequest();
  const auto unset = DecodeAttend(message, kMaxBatch);
  EXPECT_FALSE(unset->request.scale.has_value());
  EXPECT_FALSE(unset->request.window.has_value());
  EXPECT_FALSE(unset->request.query_lengths.has_value());
  message.set_scale(0);
  message.mutable_window()->set_left(0);
  message.mutable_query_lengths();
  const auto set = DecodeAttend(message, kMaxBatch);
  EXPECT_EQ(set->request.scale, 0.0f);
  EXPECT_EQ(set->request.window->left, 0);
  EXPECT_FALSE(set->request.window->right.has_value());
  EXPECT_TRUE(set->request.query_lengths->empty());
}

TEST(DecodeAttendTest, CarriesEveryOption) {
  v1::AttendRequest message = GoodRequest();
  message.set_layout(v1::HEADS_TOKENS);
  message.set_logit_softcap(2);
  message.set_causal(true);
  message.set_alignment(v1::TOP_LEFT);
  message.add_alibi_slopes(0.5f);
  message.set_alibi(true);
  message.add_sinks(-1);
  *message.mutable_keep() = ZeroTensor({1, 1, 1, 5}, v1::BOOL);
  *message.mutable_bias() = ZeroTensor({1, 1, 1, 5}, v1::FLOAT32);
  message.mutable_key_lengths()->add_values(3);
  message.set_return_lse(true);
  message.set_return_weights(true);
  message.set_kernel(v1::KERNEL_REFERENCE);
  message.set_priority(v1::LOW);
  const auto decoded = DecodeAttend(message, kMaxBatch);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const AttentionRequest& request = decoded->request;
  EXPECT_EQ(request.layout, Layout::kHeadsTokens);
  EXPECT_EQ(request.logit_softcap, 2);
  EXPECT_TRUE(request.causal && request.alibi && request.return_lse && request.return_weights);
  EXPECT_EQ(request.alignment, Alignment::kTopLeft);
  EXPECT_THAT(request.alibi_slopes, ElementsAre(0.5f));
  EXPECT_THAT(request.sinks, ElementsAre(-1));
  EXPECT_EQ(request.keep->dtype, DType::kBool);
  EXPECT_EQ(request.bias->dtype, DType::kF32);
  EXPECT_THAT(*request.key_lengths, ElementsAre(3));
  EXPECT_TRUE(decoded->use_reference);
  EXPECT_EQ(decoded->priority, Priority::kLow);
}

// Every field of the contract is either carried above or refused: one that is added without a thought here fails this
// test.
TEST(DecodeAttendTest, KnowsEveryFieldOfTheContract) { EXPECT_EQ(v1::AttendRequest::descriptor()->field_count(), 20); }

TEST(DecodeAttendTest, BoundsLengthsBeforeCopyingThem) {
  v1::AttendRequest message = GoodRequest();
  message.mutable_query_lengths()->mutable_values()->Resize(kMaxBatch + 1, 0);
  const auto decoded = DecodeAttend(message, kMaxBatch);
  EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(decoded.status().message()), HasSubstr("--max_batch"));
}

TEST(DecodeTensorTest, NamesFieldRuleAndValue) {
  v1::Tensor tensor = ZeroTensor({2, 3}, v1::FLOAT16);
  tensor.mutable_data()->push_back('\0');
  const auto decoded = DecodeTensor("bias", tensor);
  EXPECT_EQ(std::string(decoded.status().message()),
            "bias.data must have the 12 bytes of FLOAT16 [2, 3]; was 13 bytes");
}

}  // namespace
}  // namespace triad
