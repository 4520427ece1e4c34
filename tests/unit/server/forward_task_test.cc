#include "server/forward_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/reference_attention.h"
#include "core/base/cpu.h"
#include "tests/support/fake_clock.h"
#include "tests/support/server_layers.h"
#include "tests/support/server_requests.h"

namespace triad {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// One request and its task.
struct Exchange {
  v1::ForwardRequest request;
  v1::ForwardResponse response;
  std::unique_ptr<ForwardTask> task;
  int done_calls = 0;
  absl::StatusCode code = absl::StatusCode::kUnknown;
  ComputedRequest effort;
};

class ForwardTaskTest : public ::testing::Test {
 protected:
  ForwardTaskTest() {
    layers_.Publish({.name = "small", .version = 1, .layer = MakeSmallLayer(1)});
    layers_.Publish({.name = "small", .version = 2, .layer = MakeSmallLayer(2)});
  }

  // The status of Create, for a request that is kept in `exchange`.
  absl::Status Make(const v1::ForwardRequest& request, Exchange& exchange) {
    exchange.request = request;
    ForwardJob job{.request = exchange.request,
                   .response = exchange.response,
                   .received = clock_.Now(),
                   .done = [&exchange](absl::Status status, const ComputedRequest& effort) {
                     ++exchange.done_calls;
                     exchange.code = status.code();
                     exchange.effort = effort;
                   }};
    absl::StatusOr<std::unique_ptr<ForwardTask>> task = ForwardTask::Create(
        std::move(job), {.limits = {}, .max_head_sequences = 1000, .kernel = kernel_, .layers = layers_}, clock_);
    if (task.ok()) exchange.task = *std::move(task);
    return task.status();
  }
  void MakeGood(const v1::ForwardRequest& request, Exchange& exchange) {
    const absl::Status status = Make(request, exchange);
    ASSERT_TRUE(status.ok()) << status;
  }
  // Runs every item of every stage as the scheduler would.
  void Compute(Exchange& leader, const std::vector<Exchange*>& sharers = {}) {
    if (!sharers.empty()) {
      std::vector<Task*> others;
      for (Exchange* sharer : sharers) others.push_back(sharer->task.get());
      leader.task->Share(others);
    }
    do {
      for (int64_t item = 0; item < leader.task->item_count(); ++item) {
        scratch_.Reset();
        const absl::Status status = leader.task->RunItem(item, scratch_);
        ASSERT_TRUE(status.ok()) << status;
      }
    } while (leader.task->NextStage());
  }
  void End(Exchange& exchange, absl::Status status) {
    exchange.task->Finish(std::move(status), {clock_.Now(), clock_.Now() + std::chrono::seconds(1),
                                              clock_.Now() + std::chrono::seconds(3)});
    exchange.task.reset();
  }
  // Computes, then ends `leader` and whom it computed.
  void Run(Exchange& leader, const std::vector<Exchange*>& sharers = {}) {
    Compute(leader, sharers);
    End(leader, absl::OkStatus());
    for (Exchange* sharer : sharers) End(*sharer, absl::OkStatus());
  }

  FakeClock clock_;
  LayerStore layers_;
  ReferenceAttention kernel_;
  Scratch scratch_;
};

TEST_F(ForwardTaskTest, AnswersWithShapeVersionAndTimings) {
  Exchange exchange;
  v1::ForwardRequest request = MakeForwardRequest("small", 1, {.batch = 2, .tokens = 3});
  request.set_return_lse(true);
  request.set_return_weights(true);
  MakeGood(request, exchange);
  Run(exchange);
  EXPECT_EQ(exchange.done_calls, 1);
  EXPECT_EQ(exchange.code, absl::StatusCode::kOk);
  const v1::ForwardResponse& response = exchange.response;
  EXPECT_THAT(response.output().shape(), ElementsAre(2, 3, kSmallDim));
  EXPECT_THAT(response.lse().shape(), ElementsAre(2, 2, 3));
  EXPECT_THAT(response.weights().shape(), ElementsAre(2, 2, 3, 3));
  EXPECT_EQ(response.version(), 2);
  EXPECT_EQ(response.timings().queue_ns(), 1'000'000'000);
  EXPECT_EQ(response.timings().compute_ns(), 2'000'000'000);
  EXPECT_EQ(response.timings().batch_requests(), 1);
  EXPECT_EQ(response.timings().batch_tokens(), 6);
}

TEST_F(ForwardTaskTest, WhatIsNotLoadedIsNotFound) {
  Exchange exchange;
  EXPECT_TRUE(absl::IsNotFound(Make(MakeForwardRequest("other", 1), exchange)));
  v1::ForwardRequest request = MakeForwardRequest("small", 1);
  request.set_version(3);
  EXPECT_TRUE(absl::IsNotFound(Make(request, exchange)));
  EXPECT_EQ(exchange.done_calls, 0);
}

TEST_F(ForwardTaskTest, WhoWaitsOrIsRefusedHasNoReply) {
  Exchange exchange;
  MakeGood(MakeForwardRequest("small", 1), exchange);
  EXPECT_EQ(exchange.response.output().data().size(), 0u);
  exchange.task->Finish(absl::CancelledError("gone"), {});
  EXPECT_EQ(exchange.done_calls, 1);
  EXPECT_EQ(exchange.code, absl::StatusCode::kCancelled);
  EXPECT_EQ(exchange.response.output().data().size(), 0u);
}

TEST_F(ForwardTaskTest, CostCountsRequestReplyActivationsAndWork) {
  Exchange one;
  Exchange two;
  MakeGood(MakeForwardRequest("small", 1, {.tokens = 64}), one);
  MakeGood(MakeForwardRequest("small", 1, {.batch = 2, .tokens = 64}), two);
  const TaskCost cost = one.task->cost();
  const int64_t tensor = 64 * kSmallDim * 4;
  EXPECT_EQ(cost.tokens, 64);
  EXPECT_GE(cost.bytes, tensor + 2 * tensor + 3 * tensor) << "input, output twice, query, key and value";
  // Four products of 64 x 16 x 16, and the attention's.
  EXPECT_GE(cost.flop, 4 * 2.0 * 64 * kSmallDim * kSmallDim + 4.0 * 64 * 64 * kSmallDim);
  EXPECT_EQ(two.task->cost().tokens, 128);
  EXPECT_DOUBLE_EQ(two.task->cost().flop, 2 * cost.flop);
}

TEST_F(ForwardTaskTest, AloneItExecutesWhatItCosts) {
  LayerSpec cross = SmallLayerSpec();
  cross.context_dim = kSmallDim;
  layers_.Publish({.name = "cross",
                   .version = 1,
                   .layer = *HostedLayer::Create(cross, SmallLayerTensors(3), DetectInstructionSet())});
  for (int64_t tokens : {0, 1, 15, 17, 48, 200, 500}) {
    v1::ForwardRequest padded = MakeForwardRequest("small", 1, {.batch = 2, .tokens = tokens});
    padded.mutable_lengths()->add_values(tokens / 3);
    padded.mutable_lengths()->add_values(tokens);
    v1::ForwardRequest with_context = MakeForwardRequest("cross", 1, {.tokens = tokens});
    *with_context.mutable_context() = NormalTensor({1, 7, kSmallDim}, 2);
    for (const v1::ForwardRequest& request :
         {MakeForwardRequest("small", 1, {.tokens = tokens}), padded, with_context}) {
      Exchange exchange;
      MakeGood(request, exchange);
      const double cost = exchange.task->cost().flop;
      Run(exchange);
      EXPECT_DOUBLE_EQ(cost, exchange.effort.flop_executed) << tokens << " tokens of " << request.layer();
    }
  }
}

TEST_F(ForwardTaskTest, OneTokenCostsTheTileItFills) {
  Exchange one;
  Exchange sixteen;
  MakeGood(MakeForwardRequest("small", 1, {.tokens = 1}), one);
  MakeGood(MakeForwardRequest("small", 1, {.tokens = 16}), sixteen);
  const double products = 4 * 2.0 * 16 * kSmallDim * kSmallDim;
  EXPECT_GE(one.task->cost().flop, products);
  EXPECT_GE(sixteen.task->cost().flop, one.task->cost().flop);
  EXPECT_LT(sixteen.task->cost().flop, 2 * products);
}

TEST_F(ForwardTaskTest, SharesWithinOneVersionOfOneLayer) {
  Exchange latest;
  Exchange second;
  Exchange first;
  MakeGood(MakeForwardRequest("small", 1), latest);
  v1::ForwardRequest request = MakeForwardRequest("small", 1);
  request.set_version(2);
  MakeGood(request, second);
  request.set_version(1);
  MakeGood(request, first);
  EXPECT_NE(latest.task->share_key(), nullptr);
  EXPECT_EQ(latest.task->share_key(), second.task->share_key());
  EXPECT_NE(latest.task->share_key(), first.task->share_key());
}

TEST_F(ForwardTaskTest, TogetherEqualsAloneByteForByte) {
  std::vector<v1::ForwardRequest> requests;
  for (int64_t tokens : {1, 5, 17}) {
    requests.push_back(MakeForwardRequest("small", static_cast<uint64_t>(tokens), {.batch = 2, .tokens = tokens}));
    requests.back().set_return_lse(true);
    requests.back().set_return_weights(true);
    requests.back().mutable_lengths()->add_values(tokens);
    requests.back().mutable_lengths()->add_values(tokens / 2);
  }
  std::vector<Exchange> alone(requests.size());
  std::vector<Exchange> together(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    MakeGood(requests[i], alone[i]);
    Run(alone[i]);
    MakeGood(requests[i], together[i]);
  }
  Run(together[0], {&together[1], &together[2]});
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(together[i].response.output().data(), alone[i].response.output().data()) << "request " << i;
    EXPECT_EQ(together[i].response.lse().data(), alone[i].response.lse().data()) << "request " << i;
    EXPECT_EQ(together[i].response.weights().data(), alone[i].response.weights().data()) << "request " << i;
    EXPECT_EQ(together[i].response.timings().batch_requests(), 3);
    EXPECT_EQ(together[i].response.timings().batch_tokens(), 1 + 0 + 5 + 2 + 17 + 8);
  }
}

TEST_F(ForwardTaskTest, WhoComputesTellsOfTheWorkOnce) {
  Exchange leader;
  Exchange sharer;
  MakeGood(MakeForwardRequest("small", 1), leader);
  MakeGood(MakeForwardRequest("small", 2), sharer);
  Run(leader, {&sharer});
  EXPECT_EQ(leader.effort.batch_requests, 2);
  EXPECT_EQ(leader.effort.batch_tokens, 6);
  EXPECT_GE(leader.effort.flop_executed, leader.effort.flop_needed + sharer.effort.flop_needed);
  EXPECT_EQ(sharer.effort.batch_requests, 0);
  EXPECT_EQ(sharer.effort.flop_executed, 0);
  EXPECT_GT(sharer.effort.flop_needed, 0);
}

TEST_F(ForwardTaskTest, TheWorkIsToldByWhoeverEndsWellFirst) {
  for (const bool leader_ends_last : {false, true}) {
    Exchange leader;
    Exchange late;
    Exchange good;
    Exchange next;
    for (Exchange* member : {&leader, &late, &good, &next}) MakeGood(MakeForwardRequest("small", 1), *member);
    Compute(leader, {&late, &good, &next});
    if (!leader_ends_last) End(leader, absl::CancelledError("gone"));
    End(late, absl::DeadlineExceededError("late"));
    End(good, absl::OkStatus());
    End(next, absl::OkStatus());
    if (leader_ends_last) End(leader, absl::CancelledError("gone"));
    EXPECT_EQ(good.effort.batch_requests, 4);
    EXPECT_EQ(good.effort.batch_tokens, 12);
    EXPECT_GE(good.effort.flop_executed, 4 * good.effort.flop_needed);
    EXPECT_EQ(good.response.timings().batch_requests(), 4);
    EXPECT_EQ(next.response.timings().batch_tokens(), 12);
    for (const Exchange* member : {&leader, &late, &next}) {
      EXPECT_EQ(member->effort.batch_requests, 0);
      EXPECT_EQ(member->effort.flop_executed, 0);
    }
  }
}

TEST_F(ForwardTaskTest, PaddingHasLseOfMinusInfinityAndNoWeights) {
  Exchange exchange;
  v1::ForwardRequest request = MakeForwardRequest("small", 1, {.tokens = 3});
  request.mutable_lengths()->add_values(0);
  request.set_return_lse(true);
  request.set_return_weights(true);
  MakeGood(request, exchange);
  Run(exchange);
  EXPECT_THAT(Floats(exchange.response.lse()), Each(-std::numeric_limits<float>::infinity()));
  EXPECT_THAT(Floats(exchange.response.weights()), Each(0.0f));
  // Attention 0: what is left is the output projection's bias.
  const Tensor bias = *Tensor::CopyFrom(SmallLayerTensors(2).output.bias.view());
  for (size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(exchange.response.output().data().substr(row * kSmallDim * 4, kSmallDim * 4),
              std::string(reinterpret_cast<const char*>(bias.data()), kSmallDim * 4));
  }
}

TEST_F(ForwardTaskTest, AnEmptyRequestHasAnEmptyReply) {
  Exchange exchange;
  MakeGood(MakeForwardRequest("small", 1, {.batch = 0}), exchange);
  Run(exchange);
  EXPECT_EQ(exchange.code, absl::StatusCode::kOk);
  EXPECT_THAT(exchange.response.output().shape(), ElementsAre(0, 3, kSmallDim));
}

TEST_F(ForwardTaskTest, KeepsTheVersionItBeganWith) {
  Exchange exchange;
  MakeGood(MakeForwardRequest("small", 1), exchange);
  const std::weak_ptr<const HostedLayer> layer = layers_.Find("small", 2)->layer;
  ASSERT_TRUE(layers_.Remove("small", 2).ok());
  EXPECT_FALSE(layer.expired());
  Run(exchange);
  EXPECT_EQ(exchange.response.version(), 2);
  EXPECT_TRUE(layer.expired());
}

// The same tokens in `dtype`.
v1::ForwardRequest Converted(v1::ForwardRequest request, DType dtype, v1::DataType wire) {
  v1::Tensor& input = *request.mutable_input();
  const auto count = static_cast<int64_t>(input.data().size() / sizeof(float));
  std::string data(static_cast<size_t>(count * ByteSize(dtype)), '\0');
  for (int64_t i = 0; i < count; ++i) {
    StoreElement(data.data() + i * ByteSize(dtype), dtype, LoadElement(input.data().data() + i * 4, DType::kF32));
  }
  input.set_dtype(wire);
  input.set_data(data);
  return request;
}

// Whatever the layer computes in. Sizes are checked byte by byte under AddressSanitizer.
TEST_F(ForwardTaskTest, AnswersInTheTypeOfItsInput) {
  for (DType compute : {DType::kF32, DType::kBf16}) {
    LayerSpec spec = SmallLayerSpec();
    spec.compute = compute;
    absl::StatusOr<std::unique_ptr<const HostedLayer>> layer =
        HostedLayer::Create(spec, SmallLayerTensors(1), DetectInstructionSet());
    ASSERT_TRUE(layer.ok()) << layer.status();
    const std::string name = absl::StrCat("computes/", Name(compute));
    layers_.Publish({.name = name, .version = 1, .layer = *std::move(layer)});
    const v1::ForwardRequest request = MakeForwardRequest(name, 1, {.batch = 2, .tokens = 37});
    std::vector<float> first;
    for (const auto& [dtype, wire] : {std::pair(DType::kF32, v1::FLOAT32), std::pair(DType::kBf16, v1::BFLOAT16),
                                      std::pair(DType::kF16, v1::FLOAT16)}) {
      Exchange exchange;
      MakeGood(Converted(request, dtype, wire), exchange);
      Run(exchange);
      const v1::Tensor& output = exchange.response.output();
      ASSERT_EQ(output.dtype(), wire);
      ASSERT_EQ(output.data().size(), static_cast<size_t>(2 * 37 * kSmallDim * ByteSize(dtype)));
      for (int64_t i = 0; i < 2 * 37 * kSmallDim; ++i) {
        const float value = LoadElement(output.data().data() + i * ByteSize(dtype), dtype);
        if (dtype == DType::kF32) first.push_back(value);
        // Inputs rounded to 8 bits move an output of some 1 by some 2^-8 for each of the products it goes through.
        ASSERT_NEAR(value, first[static_cast<size_t>(i)], 0.1) << Name(compute) << " layer, " << Name(dtype);
      }
    }
  }
}

}  // namespace
}  // namespace triad
