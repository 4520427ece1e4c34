#include "client/tools/bench/request_builder.h"

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace triad::tools {
namespace {

using ::testing::HasSubstr;

const PlannedRequest kLongest = {.tokens = 64, .kv_len = 96};

RequestBuilder Build(const Workload& workload) { return *RequestBuilder::Create(workload, kLongest); }

TEST(RequestBuilderTest, ShapesAreThoseOfTheWorkload) {
  const RequestBuilder builder = Build({.dtype = DType::kBf16,
                                        .batch = 2,
                                        .heads = 4,
                                        .kv_heads = 2,
                                        .qk_head_dim = 8,
                                        .v_head_dim = 16,
                                        .causal = true});
  const client::AttendRequest request = builder.Attend({.tokens = 3, .kv_len = 5, .seed = 1});
  EXPECT_EQ(request.query.shape, (client::Shape{2, 3, 4, 8}));
  EXPECT_EQ(request.key.shape, (client::Shape{2, 5, 2, 8}));
  EXPECT_EQ(request.value.shape, (client::Shape{2, 5, 2, 16}));
  EXPECT_EQ(request.value.dtype, client::DataType::kBfloat16);
  EXPECT_EQ(request.value.data.size(), 2u * 5 * 2 * 16 * 2);
  EXPECT_TRUE(request.causal);
  EXPECT_EQ(request.alignment, client::Alignment::kBottomRight);
  EXPECT_FALSE(request.keep.has_value());
}

TEST(RequestBuilderTest, EqualPlansHaveEqualBytesWhateverElseIsBuilt) {
  const Workload workload;
  const PlannedRequest plan = {.tokens = 9, .kv_len = 9, .seed = 77};
  const RequestBuilder small = *RequestBuilder::Create(workload, plan);
  const RequestBuilder large = Build(workload);
  EXPECT_EQ(small.Attend(plan).query.data, large.Attend(plan).query.data);
  EXPECT_EQ(small.Attend(plan).value.data, large.Attend(plan).value.data);
}

TEST(RequestBuilderTest, SeedsAndRolesTellTensorsApart) {
  const RequestBuilder builder = Build({});
  const auto one = builder.Attend({.tokens = 9, .kv_len = 9, .seed = 1});
  const auto two = builder.Attend({.tokens = 9, .kv_len = 9, .seed = 2});
  EXPECT_NE(one.query.data, two.query.data);
  EXPECT_NE(one.query.data, one.key.data);
  EXPECT_NE(one.key.data, one.value.data);
}

TEST(RequestBuilderTest, NumbersAreNormalDeviates) {
  const RequestBuilder builder = Build({});
  const auto request = builder.Attend({.tokens = 64, .kv_len = 96, .seed = 5});
  const auto* values = reinterpret_cast<const float*>(request.key.data.data());
  const auto count = static_cast<int64_t>(request.key.data.size() / sizeof(float));
  double sum = 0;
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += values[i];
    squares += static_cast<double>(values[i]) * values[i];
  }
  const auto n = static_cast<double>(count);
  EXPECT_NEAR(sum / n, 0, 4 / std::sqrt(n));  // four deviations
  EXPECT_NEAR(squares / n, 1, 6 / std::sqrt(n));
}

TEST(RequestBuilderTest, AKeepMaskLeavesItsShareVisible) {
  const RequestBuilder builder = Build({.keep = 0.75});
  const auto request = builder.Attend({.tokens = 64, .kv_len = 96, .seed = 5});
  ASSERT_TRUE(request.keep.has_value());
  EXPECT_EQ(request.keep->shape, (client::Shape{1, 1, 64, 96}));
  double visible = 0;
  for (const std::byte keep : request.keep->data) visible += static_cast<double>(keep);
  EXPECT_NEAR(visible / (64 * 96), 0.75, 0.025);  // over four deviations
}

TEST(RequestBuilderTest, ForwardSendsHiddenStatesAndAContextWhereTheLayerHasOne) {
  const Workload workload = {.kind = Workload::Kind::kForward, .layer = "demo", .layer_version = 3, .model_dim = 32};
  const auto request = Build(workload).Forward({.tokens = 5, .kv_len = 7, .seed = 1});
  EXPECT_EQ(request.layer, "demo");
  EXPECT_EQ(request.version, 3);
  EXPECT_EQ(request.input.shape, (client::Shape{1, 5, 32}));
  EXPECT_FALSE(request.context.has_value());

  Workload crossing = workload;
  crossing.context_dim = 16;
  const RequestBuilder builder = Build(crossing);
  EXPECT_EQ(builder.Forward({.tokens = 5, .kv_len = 7, .seed = 1}).context->shape, (client::Shape{1, 7, 16}));
}

TEST(RequestBuilderTest, WhatNoMessageHoldsIsRefused) {
  const int64_t million = int64_t{1} << 20;
  const PlannedRequest one = {.tokens = 1, .kv_len = 1};
  const std::vector<std::tuple<Workload, PlannedRequest, std::string>> cases = {
      {{}, {.tokens = million, .kv_len = 1}, "the query of the longest request, FLOAT32 [1, 1048576, 8, 64],"},
      {{}, {.tokens = 1, .kv_len = million}, "the key of"},
      {{.v_head_dim = million * million}, one, "the value of"},
      {{.kind = Workload::Kind::kForward, .model_dim = million}, {.tokens = million, .kv_len = 1}, "the input of"},
      {{.kind = Workload::Kind::kForward, .context_dim = million}, {.tokens = 1, .kv_len = million}, "the context of"},
      {{.keep = 0.5}, {.tokens = 1 << 16, .kv_len = 1 << 16}, "the keep of"},
      {{.batch = million * million, .heads = million}, {.tokens = million, .kv_len = 1}, "was more than 2^63"},
  };
  for (const auto& [workload, longest, message] : cases) {
    const absl::Status status = RequestBuilder::Create(workload, longest).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace triad::tools
