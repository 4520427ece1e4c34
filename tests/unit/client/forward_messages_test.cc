#include "client/src/forward_messages.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/client/fake_connection.h"
#include "tests/unit/client/message_content.h"

namespace triad::client {
namespace {

// Every field set, none to its default.
ForwardRequest FullForward(const SmallProblem& problem) {
  ForwardRequest request = problem.HiddenStates();
  request.version = 3;
  request.layout = Layout::kPacked;
  request.lengths = std::vector<int64_t>{2};
  request.context = problem.Tensor();
  request.context_lengths = std::vector<int64_t>{};
  request.keep = TensorView::Bool(problem.keep, {1, 1, 1, 2});
  request.bias = problem.Tensor();
  request.position_offsets = std::vector<int64_t>{9};
  request.return_lse = true;
  request.return_weights = true;
  request.priority = Priority::kLow;
  return request;
}

v1::ForwardRequest EncodedForward(const ForwardRequest& request) { return Parsed<v1::ForwardRequest>(Encode(request)); }

TEST(ForwardMessagesTest, EveryFieldReachesTheWire) {
  const SmallProblem problem{};
  const v1::ForwardRequest message = EncodedForward(FullForward(problem));
  EXPECT_EQ(message.layer(), "demo");
  EXPECT_EQ(message.version(), 3);
  EXPECT_EQ(message.input().shape_size(), 3);
  EXPECT_EQ(message.input().data(),
            std::string(reinterpret_cast<const char*>(problem.values.data()), problem.values.size() * sizeof(float)));
  EXPECT_EQ(message.layout(), v1::PACKED);
  EXPECT_EQ(message.lengths().values(0), 2);
  EXPECT_EQ(message.context().shape_size(), 4);
  EXPECT_TRUE(message.has_context_lengths()) << "given, for no sequences";
  EXPECT_EQ(message.keep().dtype(), v1::BOOL);
  EXPECT_EQ(message.bias().dtype(), v1::FLOAT32);
  EXPECT_EQ(message.position_offsets().values(0), 9);
  EXPECT_TRUE(message.return_lse());
  EXPECT_TRUE(message.return_weights());
  EXPECT_EQ(message.priority(), v1::LOW);
  EXPECT_EQ(CountSetFields(message), v1::ForwardRequest::descriptor()->field_count()) << "a field was forgotten";
}

TEST(ForwardMessagesTest, WhatIsUnsetStaysUnset) {
  const v1::ForwardRequest message = EncodedForward(SmallProblem().HiddenStates());
  EXPECT_FALSE(message.has_version() || message.has_lengths() || message.has_context() ||
               message.has_context_lengths() || message.has_keep() || message.has_bias() ||
               message.has_position_offsets());
}

TEST(ForwardMessagesTest, WhatIsDefaultIsNotSent) {
  EXPECT_EQ(CountSetFields(EncodedForward({})), 3) << "input, layout and priority";
}

TEST(ForwardMessagesTest, AnswersAreMovedNotCopied) {
  v1::ForwardResponse message;
  const void* bytes = FillTensor(message.mutable_output(), {1, 16, 4})->data().data();
  FillTensor(message.mutable_weights(), {1, 1, 16, 16});
  FillTensor(message.mutable_lse(), {1, 1, 16});
  message.set_version(4);
  message.mutable_timings()->set_batch_requests(5);
  message.mutable_timings()->set_batch_tokens(80);
  const auto response = Decode(std::move(message));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->output.data().data(), bytes);
  EXPECT_EQ(response->weights->shape(), Shape({1, 1, 16, 16}));
  EXPECT_EQ(response->lse->shape(), Shape({1, 1, 16}));
  EXPECT_EQ(response->version, 4);
  EXPECT_EQ(response->timings.batch_requests, 5);
  EXPECT_EQ(response->timings.batch_tokens, 80);
}

TEST(ForwardMessagesTest, AMalformedAnswerIsAnError) {
  v1::ForwardResponse message;
  FillTensor(message.mutable_output(), {1, 2, 4})->add_shape(3);
  EXPECT_EQ(Decode(std::move(message)).status().code(), absl::StatusCode::kInternal);
}

TEST(ForwardMessagesTest, EveryFieldOfALayerIsRead) {
  v1::Layer message;
  message.set_name("minilm/0");
  message.set_version(2);
  message.set_model_dim(3);
  message.set_context_dim(4);
  message.set_output_dim(5);
  message.set_heads(6);
  message.set_kv_heads(7);
  message.set_qk_head_dim(8);
  message.set_v_head_dim(9);
  message.set_causal(true);
  message.set_rotary_dim(10);
  message.set_requires_context(true);
  message.set_weights_bytes(11);
  ASSERT_EQ(CountSetFields(message), v1::Layer::descriptor()->field_count()) << "a field was forgotten";
  const Layer layer = Decode(message);
  EXPECT_EQ(layer.name, "minilm/0");
  const std::vector<int64_t> numbers = {layer.version,    layer.model_dim,    layer.context_dim, layer.output_dim,
                                        layer.heads,      layer.kv_heads,     layer.qk_head_dim, layer.v_head_dim,
                                        layer.rotary_dim, layer.weights_bytes};
  EXPECT_EQ(numbers, std::vector<int64_t>({2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_TRUE(layer.causal && layer.requires_context);
}

}  // namespace
}  // namespace triad::client
