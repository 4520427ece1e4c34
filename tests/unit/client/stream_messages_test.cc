#include "client/src/stream_messages.h"

#include <utility>

#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "tests/unit/client/fake_connection.h"
#include "tests/unit/client/message_content.h"
#include "triad/retry.h"

namespace triad::client {
namespace {

using google::protobuf::util::MessageDifferencer;

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

TEST(EncodeItemTest, AnItemIsItsRequestWithAnIdAndATimeout) {
  const SmallProblem problem{};
  const AttendRequest request = problem.Request();
  const auto item = Parsed<v1::AttendStreamRequest>(
      EncodeItem<v1::AttendStreamRequest>(/*request_id=*/7, request, absl::Milliseconds(2500)));
  EXPECT_EQ(item.request_id(), 7);
  EXPECT_EQ(item.timeout().seconds(), 2);
  EXPECT_EQ(item.timeout().nanos(), 500'000'000);
  EXPECT_TRUE(MessageDifferencer::Equals(item.request(), Parsed<v1::AttendRequest>(Encode(request))));
}

TEST(EncodeItemTest, AnItemOfAForwardMayHaveNoTimeout) {
  const SmallProblem problem{};
  const ForwardRequest request = problem.HiddenStates();
  const auto item = Parsed<v1::ForwardStreamRequest>(
      EncodeItem<v1::ForwardStreamRequest>(/*request_id=*/0, request, absl::InfiniteDuration()));
  EXPECT_FALSE(item.has_timeout());
  EXPECT_TRUE(MessageDifferencer::Equals(item.request(), Parsed<v1::ForwardRequest>(Encode(request))));
}

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
