#include "client/tools/bench/attention_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "client/tools/bench/request_builder.h"
#include "gtest/gtest.h"

namespace triad::tools {
namespace {

const PlannedRequest kSixOfNine = {.tokens = 6, .kv_len = 9, .seed = 3};

Workload Small(DType dtype) {
  return {.dtype = dtype,
          .batch = 2,
          .keep = 0.6,
          .heads = 4,
          .kv_heads = 2,
          .qk_head_dim = 8,
          .v_head_dim = 5,
          .causal = true};
}

// y = softmax(q k^T / sqrt(dim)) v over visible keys, in double precision.
std::vector<float> Truth(const AttentionRows& r) {
  std::vector<float> output;
  for (int64_t row = 0; row < r.rows; ++row) {
    for (int64_t head = 0; head < r.heads; ++head) {
      const int64_t kv_head = head / (r.heads / r.kv_heads);
      std::vector<double> sums(static_cast<size_t>(r.v_head_dim));
      double denominator = 0;
      for (int64_t j = 0; j < r.kv_len; ++j) {
        if (!r.IsVisible(row, j)) continue;
        double dot = 0;
        for (int64_t d = 0; d < r.qk_head_dim; ++d) {
          dot += static_cast<double>(r.query[(row * r.heads + head) * r.qk_head_dim + d]) *
                 r.key[(j * r.kv_heads + kv_head) * r.qk_head_dim + d];
        }
        const double term = std::exp(dot / std::sqrt(static_cast<double>(r.qk_head_dim)));
        denominator += term;
        for (size_t d = 0; d < sums.size(); ++d)
          sums[d] += term * r.value[(j * r.kv_heads + kv_head) * r.v_head_dim + d];
      }
      for (const double sum : sums) output.push_back(denominator > 0 ? static_cast<float>(sum / denominator) : 0);
    }
  }
  return output;
}

TEST(AttentionRowsTest, TheNaiveComputationIsWithinItsOwnBound) {
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
    const RequestBuilder builder = *RequestBuilder::Create(Small(dtype), kSixOfNine);
    const AttentionRows rows = LastRows(builder.Attend(kSixOfNine), /*sequence=*/1, /*rows=*/6);
    EXPECT_LE(ExcessError(rows, dtype, NaiveOutput(rows, dtype), Truth(rows)), 1) << Name(dtype);
  }
}

TEST(AttentionRowsTest, TheLastRowsAreAProblemOfTheirOwn) {
  const RequestBuilder builder = *RequestBuilder::Create(Small(DType::kF32), kSixOfNine);
  const AttentionRows all = LastRows(builder.Attend(kSixOfNine), /*sequence=*/1, /*rows=*/6);
  const AttentionRows last = LastRows(builder.Attend(kSixOfNine), /*sequence=*/1, /*rows=*/2);
  const std::vector<float> expected = Truth(all);
  const std::vector<float> got = Truth(last);
  EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.end() - static_cast<ptrdiff_t>(got.size())));
}

TEST(AttentionRowsTest, ASmallErrorIsFound) {
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
    const RequestBuilder builder = *RequestBuilder::Create(Small(dtype), kSixOfNine);
    const AttentionRows rows = LastRows(builder.Attend(kSixOfNine), /*sequence=*/0, /*rows=*/6);
    std::vector<float> output = Truth(rows);
    EXPECT_EQ(ExcessError(rows, dtype, output, Truth(rows)), 0);
    output[17] += dtype == DType::kF32 ? 1e-4f : 0.25f;
    EXPECT_GT(ExcessError(rows, dtype, output, Truth(rows)), 1) << Name(dtype);
    output[17] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_GT(ExcessError(rows, dtype, output, Truth(rows)), 1) << Name(dtype);
  }
}

TEST(AttentionRowsTest, TheReferenceIsAskedInF32ByTheSameRules) {
  const RequestBuilder builder = *RequestBuilder::Create(Small(DType::kBf16), kSixOfNine);
  const AttentionRows rows = LastRows(builder.Attend(kSixOfNine), /*sequence=*/0, /*rows=*/2);
  const client::AttendRequest request = ReferenceRequest(rows);
  EXPECT_EQ(request.kernel, client::Kernel::kReference);
  EXPECT_EQ(request.query.dtype, client::DataType::kFloat32);
  EXPECT_EQ(request.query.shape, (client::Shape{1, 2, 4, 8}));
  EXPECT_EQ(request.key.shape, (client::Shape{1, 9, 2, 8}));
  EXPECT_EQ(request.alignment, client::Alignment::kBottomRight);
  EXPECT_EQ(request.keep->shape, (client::Shape{1, 1, 2, 9}));
}

TEST(AttentionRowsTest, ARowThatSeesNothingIsZero) {
  AttentionRows rows{.rows = 1, .kv_len = 2, .heads = 1, .kv_heads = 1, .qk_head_dim = 1, .v_head_dim = 1};
  rows.query = {1};
  rows.key = {1, 2};
  rows.value = {3, 4};
  rows.keep = {0, 0};
  EXPECT_EQ(NaiveOutput(rows, DType::kF32), std::vector<float>{0});
  EXPECT_EQ(LargestLogit(rows), 0);
}

}  // namespace
}  // namespace triad::tools
