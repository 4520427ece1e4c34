#include "core/attention/row_product.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/attention/lane_product.h"
#include "core/attention/lane_softmax.h"
#include "core/base/cpu.h"
#include "core/base/dims.h"
#include "core/base/scratch.h"
#include "core/tensor/dtype.h"
#include "gtest/gtest.h"

namespace triad {
namespace {

constexpr float kRowInfinity = std::numeric_limits<float>::infinity();
constexpr float kRowNaN = std::numeric_limits<float>::quiet_NaN();

struct RowProductSize {
  int64_t keys;
  int64_t dims;
  int64_t heads = 1;  // in each token
};
const RowProductSize kRowProductSizes[] = {{1, 1},     {2, 3},      {3, 64},     {7, 33},     {8, 128},   {15, 80},
                                           {17, 31},   {128, 64},   {127, 192},  {1, 5, 2},   {3, 64, 8}, {33, 24, 3},
                                           {16, 7, 4}, {18, 17, 5}, {5, 16, 12}, {40, 33, 7}, {17, 8, 32}};

std::ostream& operator<<(std::ostream& out, const RowProductSize& size) {
  return out << size.keys << " keys of " << size.heads << " heads, " << size.dims << " dims";
}

// Numbers about 1 that every type holds; rows are a few elements further apart than they are long, and not aligned.
class RowProductTest : public testing::TestWithParam<std::tuple<int64_t, DType>> {
 protected:
  int64_t rows() const { return std::get<0>(GetParam()); }
  static float Number(int64_t i, int64_t step) { return static_cast<float>((i * step) % 101 - 50) / 32; }
  float* Fill(int64_t count, int64_t step) {
    float* values = scratch_.Allocate<float>(count);
    for (int64_t i = 0; i < count; ++i) values[i] = Number(i, step);
    return values;
  }
  // Row r, element e: Number(r * stride + e, step).
  SourceRows FillSource(const RowProductSize& size, int64_t stride, int64_t step) {
    const DType dtype = std::get<1>(GetParam());
    const int64_t bytes = ByteSize(dtype);
    std::byte* data = scratch_.Allocate<std::byte>((size.keys * stride + 1) * bytes) + bytes;
    for (int64_t i = 0; i < size.keys * stride; ++i) StoreElement(data + i * bytes, dtype, Number(i, step));
    return {.data = data, .stride_bytes = stride * bytes, .count = size.keys, .dtype = dtype, .dims = size.dims};
  }

  Scratch scratch_;
};

TEST_P(RowProductTest, EveryScoreIsOneChainInTheOrderOfDims) {
  for (const RowProductSize& size : kRowProductSizes) {
    const int64_t head_stride = size.dims + 1;
    const int64_t stride = size.heads * head_stride + 2;
    const int64_t query_stride = size.dims + 3;
    const SourceRows keys = FillSource(size, stride, 7);
    const float* queries = Fill(size.heads * rows() * query_stride, 11);
    const int64_t score_stride = RoundUp(size.keys, 8);
    float* scores = scratch_.Allocate<float>(size.heads * rows() * score_stride);
    MultiplyKeysByRows({.keys = keys,
                        .heads = {.count = size.heads, .stride_bytes = head_stride * ByteSize(keys.dtype)},
                        .queries = queries,
                        .query_stride = query_stride,
                        .rows = rows(),
                        .scores = scores,
                        .score_stride = score_stride});
    for (int64_t row = 0; row < size.heads * rows(); ++row) {
      for (int64_t key = 0; key < size.keys; ++key) {
        const int64_t first = key * stride + row / rows() * head_stride;
        float sum = 0;
        for (int64_t d = 0; d < size.dims; ++d)
          sum = std::fma(Number(first + d, 7), queries[row * query_stride + d], sum);
        ASSERT_EQ(scores[row * score_stride + key], sum) << size << ", row " << row << ", key " << key;
      }
    }
  }
}

TEST_P(RowProductTest, EveryOutputIsOneChainInTheOrderOfKeys) {
  for (const RowProductSize& size : kRowProductSizes) {
    const int64_t head_stride = size.dims + 1;
    const int64_t stride = size.heads * head_stride + 2;
    const int64_t output_stride = size.dims + 5;
    const SourceRows values = FillSource(size, stride, 7);
    const float* weights = Fill(size.heads * rows() * size.keys, 11);
    float* output = scratch_.Allocate<float>(size.heads * rows() * output_stride);
    MultiplyValuesByRows({.values = values,
                          .heads = {.count = size.heads, .stride_bytes = head_stride * ByteSize(values.dtype)},
                          .weights = weights,
                          .weight_stride = size.keys,
                          .rows = rows(),
                          .output = output,
                          .output_stride = output_stride});
    for (int64_t row = 0; row < size.heads * rows(); ++row) {
      for (int64_t d = 0; d < size.dims; ++d) {
        const int64_t first = row / rows() * head_stride + d;
        float sum = 0;
        for (int64_t key = 0; key < size.keys; ++key) {
          sum = std::fma(Number(first + key * stride, 7), weights[row * size.keys + key], sum);
        }
        ASSERT_EQ(output[row * output_stride + d], sum) << size << ", row " << row << ", dim " << d;
      }
    }
  }
}

std::string RowProductName(const testing::TestParamInfo<std::tuple<int64_t, DType>>& test) {
  return absl::StrCat(std::get<0>(test.param), "_", Name(std::get<1>(test.param)));
}
INSTANTIATE_TEST_SUITE_P(Rows, RowProductTest,
                         testing::Combine(testing::Range<int64_t>(1, kFewRows + 1),
                                          testing::Values(DType::kF32, DType::kBf16, DType::kF16)),
                         RowProductName);

// Pairs of weights, in a row and in every lane of a strip; each is the nearest bf16, which halfway between two has the
// larger magnitude.
TEST(PairWeightsTest, RoundsAlikeInARowAndInALane) {
  Scratch scratch;
  const int64_t width = StripShapeOf(DetectInstructionSet()).unit;
  const std::vector<float> weights = {0, 1, 0x1p-126f, 0.3f, 1 + 0x1p-8f, 1 + 0x1p-9f, 0.99999994f, 1e-20f};
  const std::vector<float> rounded = {0, 1, 0x1p-126f, 0.30078125f, 1 + 0x1p-7f, 1, 1, 0x1.7ap-67f};
  float* row = scratch.Allocate<float>(8);
  std::copy(weights.begin(), weights.end(), row);
  PairWeightsOfRow(row, 8);
  const ScoreStrip strip{.scores = scratch.Allocate<float>(8 * width), .keys = 8, .width = width};
  for (int64_t k = 0; k < 8; ++k) std::fill_n(strip.scores + k * width, width, weights[static_cast<size_t>(k)]);
  PairWeights(strip);
  for (int64_t k = 0; k < 8; ++k) {
    uint16_t of_row[2], of_lane[2];
    std::memcpy(of_row, row + k / 2, sizeof(of_row));
    std::memcpy(of_lane, strip.scores + k / 2 * width + width - 1, sizeof(of_lane));
    EXPECT_EQ(Bf16ToF32(of_row[k % 2]), rounded[static_cast<size_t>(k)]) << "weight " << k;
    EXPECT_EQ(of_lane[k % 2], of_row[k % 2]) << "weight " << k;
  }
}

// One row's softmax, and the same in every lane of a strip: what a decode step and a prefill make of it.
TEST(SoftmaxOfRowTest, HasTheBytesOfALane) {
  Scratch scratch;
  const int64_t width = StripShapeOf(DetectInstructionSet()).unit;
  std::vector<std::vector<float>> rows = {std::vector<float>(8, -kRowInfinity),
                                          {1, kRowNaN, 3, -kRowInfinity, 0, 1, 2, 3},
                                          {-kRowInfinity, kRowNaN, -kRowInfinity, -kRowInfinity, -kRowInfinity,
                                           -kRowInfinity, -kRowInfinity, -kRowInfinity},
                                          {kRowInfinity, 1, 2, 3, 4, 5, 6, 7}};
  std::vector<float> long_row;
  for (int i = 0; i < 128; ++i) long_row.push_back(static_cast<float>((i * 37) % 101 - 50) / 7);
  rows.push_back(long_row);
  for (const std::vector<float>& row : rows) {
    const auto count = static_cast<int64_t>(row.size());
    float* scores = scratch.Allocate<float>(count);
    std::copy(row.begin(), row.end(), scores);
    const RowMaxAndSum result = SoftmaxOfRow(scores, count, /*factor=*/0.3f);

    const ScoreStrip strip{
        .scores = scratch.Allocate<float>(count * width), .keys = count, .width = width, .factor = 0.3f};
    for (int64_t k = 0; k < count; ++k) std::fill_n(strip.scores + k * width, width, row[static_cast<size_t>(k)]);
    const LaneState state{.max = scratch.Allocate<float>(width),
                          .sum = scratch.Allocate<float>(width),
                          .keep = scratch.Allocate<float>(width),
                          .add = scratch.Allocate<float>(width)};
    std::fill_n(state.max, width, -kRowInfinity);
    std::fill_n(state.sum, width, 0.0f);
    SoftmaxStrip(strip, state);
    for (int64_t k = 0; k < count; ++k) {
      const float lane = strip.scores[k * width];
      if (std::isnan(lane)) {
        EXPECT_TRUE(std::isnan(scores[k]));
      } else {
        EXPECT_EQ(scores[k], lane) << "key " << k;
      }
    }
    EXPECT_EQ(std::isnan(result.sum), std::isnan(state.sum[0]));
    if (std::isnan(result.sum)) continue;
    EXPECT_EQ(result.max, state.max[0]);
    EXPECT_EQ(result.sum, state.sum[0]);
  }
}

}  // namespace
}  // namespace triad
