#include "client/src/attend_messages.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/client/fake_connection.h"
#include "tests/unit/client/message_content.h"

namespace triad::client {
namespace {

// Every field set, none to its default.
AttendRequest FullRequest(const SmallProblem& problem) {
  AttendRequest request = problem.Request();
  request.layout = Layout::kHeadsTokens;
  request.scale = 0.0F;
  request.logit_softcap = 30;
  request.causal = true;
  request.alignment = Alignment::kBottomRight;
  request.window = Window{.left = 0, .right = 5};
  request.alibi_slopes = {0.5F};
  request.alibi = true;
  request.sinks = {-std::numeric_limits<float>::infinity()};
  request.keep = TensorView::Bool(problem.keep, {1, 1, 1, 2});
  request.bias = problem.Tensor();
  request.query_lengths = std::vector<int64_t>{2};
  request.key_lengths = std::vector<int64_t>{};
  request.return_lse = true;
  request.return_weights = true;
  request.kernel = Kernel::kReference;
  request.priority = Priority::kLow;
  return request;
}

v1::AttendRequest Encoded(const AttendRequest& request) { return Parsed<v1::AttendRequest>(Encode(request)); }

TEST(AttendMessagesTest, EveryFieldReachesTheWire) {
  const SmallProblem problem{};
  const v1::AttendRequest message = Encoded(FullRequest(problem));
  EXPECT_EQ(message.query().dtype(), v1::FLOAT32);
  EXPECT_EQ(message.query().shape_size(), 4);
  EXPECT_EQ(message.query().data(),
            std::string(reinterpret_cast<const char*>(problem.values.data()), problem.values.size() * sizeof(float)));
  EXPECT_EQ(message.layout(), v1::HEADS_TOKENS);
  EXPECT_TRUE(message.has_scale());
  EXPECT_EQ(message.scale(), 0);
  EXPECT_EQ(message.logit_softcap(), 30);
  EXPECT_TRUE(message.causal());
  EXPECT_EQ(message.alignment(), v1::BOTTOM_RIGHT);
  EXPECT_TRUE(message.window().has_left());
  EXPECT_EQ(message.window().right(), 5);
  EXPECT_EQ(message.alibi_slopes(0), 0.5F);
  EXPECT_TRUE(message.alibi());
  EXPECT_EQ(message.sinks_size(), 1);
  EXPECT_EQ(message.keep().dtype(), v1::BOOL);
  EXPECT_TRUE(message.has_bias());
  EXPECT_EQ(message.query_lengths().values(0), 2);
  EXPECT_TRUE(message.has_key_lengths()) << "given, for no sequences";
  EXPECT_TRUE(message.return_lse());
  EXPECT_TRUE(message.return_weights());
  EXPECT_EQ(message.kernel(), v1::KERNEL_REFERENCE);
  EXPECT_EQ(message.priority(), v1::LOW);
}

TEST(AttendMessagesTest, NoFieldOfTheWireIsForgotten) {
  EXPECT_EQ(CountSetFields(Encoded(FullRequest(SmallProblem()))), v1::AttendRequest::descriptor()->field_count());
}

TEST(AttendMessagesTest, WhatIsUnsetStaysUnset) {
  const v1::AttendRequest message = Encoded(SmallProblem().Request());
  EXPECT_FALSE(message.has_scale());
  EXPECT_FALSE(message.has_window());
  EXPECT_FALSE(message.has_keep());
  EXPECT_FALSE(message.has_bias());
  EXPECT_FALSE(message.has_query_lengths());
  EXPECT_FALSE(message.has_key_lengths());
}

// A server may have been built before a field, or check that none is unknown to it.
TEST(AttendMessagesTest, WhatIsDefaultIsNotSent) {
  EXPECT_EQ(CountSetFields(Encoded({})), 5) << "query, key, value, layout and priority";
}

TEST(AttendMessagesTest, WhoOwnsATensorDoesNotShow) {
  const auto values = std::make_shared<const std::vector<float>>(2 * 4096, 1.5F);
  const SmallProblem problem{};
  AttendRequest request = FullRequest(problem);
  request.key = TensorView::Float32(*values, {1, 2, 1, 4096});
  request.bias = request.key;
  const std::string borrowed = Joined(ToByteBuffer(Encode(request)));
  request.key.owner = values;
  request.bias->owner = values;
  EXPECT_EQ(Joined(ToByteBuffer(Encode(request))), borrowed);
  EXPECT_EQ(Encoded(request).bias().data().size(), values->size() * sizeof(float));
}

TEST(AttendMessagesTest, AnswersAreMovedNotCopied) {
  v1::AttendResponse message;
  const void* bytes = FillTensor(message.mutable_output(), {1, 16, 1, 4})->data().data();
  const auto response = Decode(std::move(message));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->output.data().data(), bytes);
  EXPECT_EQ(response->output.shape(), Shape({1, 16, 1, 4}));
  EXPECT_FALSE(response->lse.has_value());
  EXPECT_FALSE(response->weights.has_value());
}

TEST(AttendMessagesTest, AnswersBringWhatWasAskedFor) {
  v1::AttendResponse message;
  FillTensor(message.mutable_output(), {1, 2, 1, 4});
  FillTensor(message.mutable_lse(), {1, 1, 2});
  FillTensor(message.mutable_weights(), {1, 1, 2, 2});
  message.mutable_timings()->set_compute_ns(5);
  const auto response = Decode(std::move(message));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->lse->shape(), Shape({1, 1, 2}));
  EXPECT_EQ(response->weights->float32().size(), 4);
  EXPECT_EQ(response->timings.compute, absl::Nanoseconds(5));
}

TEST(AttendMessagesTest, AMalformedAnswerIsAnError) {
  v1::AttendResponse message;
  FillTensor(message.mutable_output(), {1, 2, 1, 4})->add_shape(3);
  EXPECT_EQ(Decode(std::move(message)).status().code(), absl::StatusCode::kInternal);
}

TEST(AttendMessagesTest, EveryLimitOfTheServerIsRead) {
  v1::ServerInfo message;
  v1::ServerInfo::Limits& limits = *message.mutable_limits();
  std::vector<int64_t> numbers;  // each limit is its field's number
  for (int i = 0; i < limits.GetDescriptor()->field_count(); ++i) {
    const auto* field = limits.GetDescriptor()->field(i);
    numbers.push_back(field->number());
    limits.GetReflection()->SetInt64(&limits, field, field->number());
  }
  const Limits read = Decode(message).limits;
  EXPECT_EQ(numbers,
            std::vector<int64_t>(
                {read.max_message_bytes, read.max_tokens_per_request, read.max_head_dim, read.max_weights_bytes,
                 read.max_in_flight_bytes, absl::ToInt64Nanoseconds(read.max_queue_time), read.max_streams,
                 read.max_stream_items, read.max_reference_work, read.max_batch, read.max_in_flight_requests,
                 read.grpc_memory_bytes, read.max_layer_loads, read.max_peer_in_flight_requests,
                 read.max_peer_in_flight_bytes, read.max_head_sequences, read.max_layer_weights_bytes}));
}

}  // namespace
}  // namespace triad::client
