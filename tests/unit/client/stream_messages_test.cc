#include "client/src/stream_messages.h"

#include <utility>

#include "gtest/gtest.h"
#include "tests/unit/client/message_content.h"
#include "triad/retry.h"

namespace triad::client {
namespace {

// Each stream's answer and message.
template <class AnswerType, class MessageType>
struct AnswerAndMessage {
  using Answer = AnswerType;
  using Message = MessageType;
};
template <class Pair>
class StreamMessagesTest : public ::testing::Test {};
using BothStreams = ::testing::Types<AnswerAndMessage<AttendAnswer, v1::AttendStreamResponse>,
                                     AnswerAndMessage<ForwardAnswer, v1::ForwardStreamResponse>>;
TYPED_TEST_SUITE(StreamMessagesTest, BothStreams);

TYPED_TEST(StreamMessagesTest, AnAnswerBringsItsIdAndTensors) {
  typename TypeParam::Message message;
  message.set_request_id(7);
  FillTensor(message.mutable_response()->mutable_output(), {1, 2});
  const auto answer = DecodeAnswer<typename TypeParam::Answer>(std::move(message));
  EXPECT_EQ(answer.request_id, 7);
  ASSERT_TRUE(answer.response.ok()) << answer.response.status();
  EXPECT_EQ(answer.response->output.shape(), Shape({1, 2}));
}

TYPED_TEST(StreamMessagesTest, AnErrorBringsItsCodeAndPushback) {
  typename TypeParam::Message message;
  message.set_request_id(7);
  message.mutable_error()->set_code(8);
  message.mutable_error()->set_message("queue full");
  message.mutable_error()->mutable_retry_delay()->set_nanos(250'000'000);
  const auto answer = DecodeAnswer<typename TypeParam::Answer>(std::move(message));
  EXPECT_EQ(answer.request_id, 7);
  EXPECT_EQ(answer.response.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(RetryPushback(answer.response.status()), absl::Milliseconds(250));
}

TYPED_TEST(StreamMessagesTest, AnErrorThatIsNoneIsMalformed) {
  typename TypeParam::Message message;
  message.mutable_error()->set_code(0);
  EXPECT_EQ(DecodeAnswer<typename TypeParam::Answer>(std::move(message)).response.status().code(),
            absl::StatusCode::kInternal);
}

TYPED_TEST(StreamMessagesTest, AnAnswerThatIsNeitherIsMalformed) {
  EXPECT_EQ(DecodeAnswer<typename TypeParam::Answer>(typename TypeParam::Message()).response.status().code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace triad::client
