#include "core/attention/lane_product.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/cpu.h"
#include "core/base/scratch.h"
#include "gtest/gtest.h"

namespace triad {
namespace {

std::vector<int64_t> Widths() {
  const StripShape shape = StripShapeOf(DetectInstructionSet());
  std::vector<int64_t> widths;
  for (int64_t units = 1; units <= shape.most_units; ++units) widths.push_back(units * shape.unit);
  return widths;
}

struct LaneProductSize {
  int64_t keys;
  int64_t dims;
};
const LaneProductSize kLaneProductSizes[] = {{1, 1},   {2, 3},   {3, 64},   {7, 33},   {8, 128},
                                             {15, 80}, {31, 31}, {128, 64}, {127, 192}};

// Numbers about 1; rows are a few elements further apart than they are long, and not aligned.
class LaneProductTest : public testing::Test {
 protected:
  float* Fill(int64_t count, int64_t step) {
    float* values = scratch_.Allocate<float>(count);
    for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>((i * step) % 101 - 50) / 37;
    return values;
  }

  Scratch scratch_;
};

// The contract, in scalars: fused multiply-adds in the order of the dims, or of the keys.
TEST_F(LaneProductTest, EveryScoreIsOneChainInTheOrderOfDims) {
  for (const LaneProductSize& size : kLaneProductSizes) {
    for (int64_t width : Widths()) {
      const int64_t stride = size.dims + 3;
      const float* keys = Fill(size.keys * stride + 1, 7) + 1;
      const float* queries = Fill(size.dims * width, 11);
      float* scores = scratch_.Allocate<float>(size.keys * width);
      MultiplyKeys({.keys = keys,
                    .key_stride = stride,
                    .key_count = size.keys,
                    .queries = queries,
                    .dims = size.dims,
                    .width = width,
                    .scores = scores});
      for (int64_t key = 0; key < size.keys; ++key) {
        for (int64_t lane = 0; lane < width; ++lane) {
          float sum = 0;
          for (int64_t d = 0; d < size.dims; ++d) {
            sum = std::fma(keys[key * stride + d], queries[d * width + lane], sum);
          }
          ASSERT_EQ(scores[key * width + lane], sum) << size.keys << " keys, " << size.dims << " dims, width " << width;
        }
      }
    }
  }
}

TEST_F(LaneProductTest, EveryOutputIsOneChainInTheOrderOfKeysAndJoinsTheOneBefore) {
  for (const LaneProductSize& size : kLaneProductSizes) {
    for (int64_t width : Widths()) {
      const int64_t stride = size.dims + 5;
      const float* values = Fill(size.keys * stride + 1, 7) + 1;
      const float* weights = Fill(size.keys * width, 11);
      const float* keep = Fill(width, 3);
      const float* add = Fill(width, 5);
      float* output = Fill(size.dims * width, 13);
      const std::vector<float> before(output, output + size.dims * width);
      AddValues({.values = values,
                 .value_stride = stride,
                 .key_count = size.keys,
                 .weights = weights,
                 .dims = size.dims,
                 .width = width,
                 .keep = keep,
                 .add = add,
                 .output = output});
      for (int64_t d = 0; d < size.dims; ++d) {
        for (int64_t lane = 0; lane < width; ++lane) {
          float sum = 0;
          for (int64_t key = 0; key < size.keys; ++key) {
            sum = std::fma(values[key * stride + d], weights[key * width + lane], sum);
          }
          const int64_t i = d * width + lane;
          const float expected = std::fma(sum, add[lane], before[static_cast<size_t>(i)] * keep[lane]);
          ASSERT_EQ(output[i], expected) << size.keys << " keys, " << size.dims << " dims, width " << width;
        }
      }
    }
  }
}

}  // namespace
}  // namespace triad
