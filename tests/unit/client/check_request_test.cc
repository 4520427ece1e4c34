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

TEST(CheckOwnLimitTest, SaysThatTheLimitIsTheClients) {
  EXPECT_TRUE(CheckOwnLimit(100, 100).ok());
  EXPECT_EQ(
      CheckOwnLimit(101, 100),
      absl::InvalidArgumentError("bytes of the request must be at most 100, ClientOptions::max_message_bytes of this "
                                 "client; was 101"));
}

TEST(CheckServerLimitsTest, NamesFlagServerAndBothNumbers) {
  const SmallProblem problem{};
  AttendRequest request = problem.Request();
  request.return_weights = true;
  const auto refusal = [&](const Limits& limits) { return Message(CheckServerLimits(request, 200, limits, "host:1")); };
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

TEST(CheckServerLimitsTest, ReadsSizesByLayout) {
  const std::vector<float> values(2 * 3 * 5 * 7);
  const TensorView tensor = TensorView::Float32(values, {2, 3, 5, 7});
  AttendRequest request{.query = tensor, .key = tensor, .value = tensor};
  const Limits limits{.max_tokens_per_request = 1};
  EXPECT_THAT(Message(CheckServerLimits(request, 0, limits, "s")), HasSubstr("was 12")) << "2 * (3 + 3)";
  request.layout = Layout::kHeadsTokens;
  EXPECT_THAT(Message(CheckServerLimits(request, 0, limits, "s")), HasSubstr("was 20")) << "2 * (5 + 5)";
  const TensorView packed = TensorView::Float32(values, {6, 5, 7});
  request = {.query = packed, .key = packed, .value = packed, .layout = Layout::kPacked};
  EXPECT_THAT(Message(CheckServerLimits(request, 0, limits, "s")), HasSubstr("was 12")) << "6 + 6";
  request.return_weights = true;
  request.key_lengths = std::vector<int64_t>{2, 4};
  EXPECT_THAT(Message(CheckServerLimits(request, 0, {.max_weights_bytes = 1}, "s")), HasSubstr("was 480"))
      << "5 heads * 6 queries * 4 keys * 4 bytes";
}

TEST(CheckServerLimitsTest, LeavesAWrongRankToTheServer) {
  AttendRequest request = SmallProblem().Request();
  request.query.shape = {8};
  EXPECT_TRUE(CheckServerLimits(request, 0, {.max_tokens_per_request = 1}, "s").ok());
}

}  // namespace
}  // namespace triad::client
