#include "client/src/check_request.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/fake_connection.h"

namespace triad::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(CheckTensorTest, AcceptsExactlyTheBytesOfTheShape) {
  const std::vector<float> values(6);
  EXPECT_TRUE(CheckTensor("query", TensorView::Float32(values, {2, 3})).ok());
  EXPECT_TRUE(CheckTensor("query", TensorView::Float32(values, {1, 6, 1})).ok());
  EXPECT_TRUE(CheckTensor("query", TensorView::Float32({}, {2, 0, 3})).ok());
  EXPECT_TRUE(CheckTensor("keep", TensorView::Bool(std::vector<uint8_t>(3), {3})).ok());
}

TEST(CheckTensorTest, NamesFieldRuleAndValueWhenBytesDoNotMatch) {
  const std::vector<float> values(5);
  const absl::Status status = CheckTensor("key", TensorView::Float32(values, {2, 3}));
  EXPECT_EQ(status, absl::InvalidArgumentError("key.data must have the 24 bytes of FLOAT32 [2, 3]; was 20"));
}

TEST(CheckTensorTest, RefusesShapesThatAreNoSize) {
  EXPECT_EQ(CheckTensor("key", TensorView::Float32({}, {2, -1})),
            absl::InvalidArgumentError("key.shape[1] must be >= 0; was -1"));
  EXPECT_THAT(Message(CheckTensor("key", TensorView::Float32({}, {kMax, 2}))), HasSubstr("fewer than 2^63 bytes"));
  EXPECT_THAT(Message(CheckTensor("key", TensorView::Float32({}, {kMax, 2, 0}))), HasSubstr("fewer than 2^63 bytes"));
  EXPECT_THAT(Message(CheckTensor("key", {.dtype = DataType{9}})), HasSubstr("key.dtype"));
}

TEST(CheckTensorTest, LooksAtEveryTensorOfARequest) {
  const SmallProblem problem{};
  const TensorView bad = TensorView::Float32({}, {1});
  EXPECT_TRUE(CheckTensors(problem.Request()).ok());
  const auto expect_refused = [](absl::string_view field, const AttendRequest& request) {
    EXPECT_THAT(Message(CheckTensors(request)), HasSubstr(std::string(field) + ".data"));
  };
  AttendRequest request = problem.Request();
  request.value = bad;
  expect_refused("value", request);
  request = problem.Request();
  request.keep = bad;
  expect_refused("keep", request);
  request = problem.Request();
  request.bias = bad;
  expect_refused("bias", request);
}

TEST(CheckTensorTest, LooksAtEveryTensorOfHiddenStates) {
  const SmallProblem problem{};
  const TensorView bad = TensorView::Float32({}, {1});
  EXPECT_TRUE(CheckTensors(problem.HiddenStates()).ok());
  const auto expect_refused = [](absl::string_view field, const ForwardRequest& request) {
    EXPECT_THAT(Message(CheckTensors(request)), HasSubstr(std::string(field) + ".data"));
  };
  ForwardRequest request = problem.HiddenStates();
  request.context = bad;
  expect_refused("context", request);
  request = problem.HiddenStates();
  request.keep = bad;
  expect_refused("keep", request);
  request = problem.HiddenStates();
  request.bias = bad;
  expect_refused("bias", request);
  request.input = bad;
  expect_refused("input", request);
}

TEST(CheckOwnLimitTest, SaysThatTheLimitIsTheClients) {
  EXPECT_TRUE(CheckOwnLimit(100, {}, 100).ok());
  EXPECT_EQ(CheckOwnLimit(101, {}, 100),
            absl::InvalidArgumentError("bytes of the request must be at most 100, max_message_bytes of this "
                                       "client; was 101"));
}

TEST(CheckOwnLimitTest, LooksAtTheAnswerToo) {
  EXPECT_TRUE(CheckOwnLimit(1, {.reply_bytes = 100}, 100).ok());
  EXPECT_EQ(CheckOwnLimit(1, {.reply_bytes = 101}, 100),
            absl::InvalidArgumentError("bytes of output, lse and weights must be at most 100, "
                                       "max_message_bytes of this client; was 101"));
}

TEST(CheckServerLimitsTest, NamesFlagServerAndBothNumbers) {
  const SmallProblem problem{};
  AttendRequest request = problem.Request();
  request.return_weights = true;
  const RequestSizes sizes = SizesOf(request);
  const auto refusal = [&](const Limits& limits) { return Message(CheckServerLimits(sizes, 200, limits, "host:1")); };
  EXPECT_EQ(refusal({}), "") << "limits that are not known";
  EXPECT_EQ(
      refusal({.max_message_bytes = 200, .max_tokens_per_request = 4, .max_head_dim = 4, .max_weights_bytes = 16}), "");
  EXPECT_EQ(refusal({.max_message_bytes = 199}),
            "bytes of the request must be at most 199, --max_message_bytes of the server at host:1; was 200");
  EXPECT_THAT(refusal({.max_tokens_per_request = 3}),
              AllOf(HasSubstr("at most 3, --max_tokens_per_request"), HasSubstr("was 4")));
  EXPECT_THAT(refusal({.max_head_dim = 3}), AllOf(HasSubstr("at most 3, --max_head_dim"), HasSubstr("was 4")));
  EXPECT_THAT(refusal({.max_weights_bytes = 15}),
              AllOf(HasSubstr("at most 15, --max_weights_bytes"), HasSubstr("was 16")));
}

TEST(CheckServerLimitsTest, LooksAtBatchAndAnswerToo) {
  const auto refusal = [&](const RequestSizes& sizes, const Limits& limits) {
    return Message(CheckServerLimits(sizes, 1, limits, "host:1"));
  };
  EXPECT_THAT(refusal({.batch = 3}, {.max_batch = 2}), AllOf(HasSubstr("at most 2, --max_batch"), HasSubstr("was 3")));
  EXPECT_THAT(refusal({.reply_bytes = 11}, {.max_message_bytes = 10}),
              AllOf(HasSubstr("output, lse and weights must be at most 10, --max_message_bytes"), HasSubstr("was 11")));
  EXPECT_THAT(refusal({.tokens = kTooMany}, {.max_tokens_per_request = 1}), HasSubstr("was more than 2^63"));
}

}  // namespace
}  // namespace triad::client
