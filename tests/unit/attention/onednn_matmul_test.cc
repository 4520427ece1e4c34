#include "core/attention/onednn_matmul.h"

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/attention/tile_geometry.h"
#include "core/base/cpu.h"
#include "gtest/gtest.h"

namespace triad {
namespace {

std::vector<float> Normal(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

// c [m, n] of `shape`, dense whatever c_stride is.
std::vector<float> Multiply(const MatmulShape& shape, const float* a, const float* b) {
  absl::StatusOr<std::shared_ptr<const TileMatmul>> matmul = TileMatmul::Create(shape);
  EXPECT_TRUE(matmul.ok()) << matmul.status();
  std::vector<std::byte> scratchpad(static_cast<size_t>((*matmul)->scratchpad_bytes()));
  absl::StatusOr<MatmulCall> call = MatmulCall::Create(*matmul, scratchpad.data());
  EXPECT_TRUE(call.ok()) << call.status();
  std::vector<float> c(static_cast<size_t>(shape.m * shape.c_stride));
  EXPECT_TRUE(call->Run(a, b, c.data()).ok());
  std::vector<float> dense;
  for (int64_t i = 0; i < shape.m; ++i) {
    const auto row = c.begin() + i * shape.c_stride;
    dense.insert(dense.end(), row, row + shape.n);
  }
  return dense;
}

// The two products of a tile of `m` rows and `width` keys, head dimensions of 64, in the layout of `isa`.
MatmulShape ScoresShape(const TileLayout& layout, int64_t m, int64_t width) {
  return {.m = m,
          .k = 64,
          .n = width,
          .a_stride = 64,
          .b_stride = layout.transposes_keys ? layout.padded_stride : 64,
          .c_stride = layout.ScoreStride(width),
          .b_transposed = !layout.transposes_keys};
}

MatmulShape ValuesShape(const TileLayout& layout, int64_t m, int64_t width) {
  return {.m = m, .k = width, .n = 64, .a_stride = layout.ScoreStride(width), .b_stride = 64, .c_stride = 64};
}

class OneDnnMatmulTest : public testing::TestWithParam<InstructionSet> {
 protected:
  const TileLayout layout_ = LayoutFor(GetParam());
};

TEST_P(OneDnnMatmulTest, ComputesTheProductOfStridedOperands) {
  const MatmulShape shape = ScoresShape(layout_, /*m=*/48, /*width=*/64);
  const std::vector<float> a = Normal(48 * 64, 1);
  const std::vector<float> b = Normal(64 * (kKeyBlock + 16), 2);
  const std::vector<float> c = Multiply(shape, a.data(), b.data());
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t j = 0; j < shape.n; ++j) {
      double expected = 0;
      for (int64_t k = 0; k < shape.k; ++k) {
        const int64_t index = shape.b_transposed ? j * shape.b_stride + k : k * shape.b_stride + j;
        expected += double{a[i * shape.a_stride + k]} * b[index];
      }
      // Each of 64 terms of about 1 is rounded once: 64 eps, with room for the sum's growth.
      ASSERT_NEAR(c[i * shape.n + j], expected, 64 * 6e-8 * 8) << i << ", " << j;
    }
  }
}

// What lets a request's rows be computed beside any others: neither the number of rows nor a row's place shows in its
// bytes. Of the machine's own layout alone: which kernels oneDNN has here is decided by the machine.
TEST(OneDnnMatmulLawTest, RowBytesDependNeitherOnTheRowClassNorOnThePlace) {
  const TileLayout layout = LayoutFor(DetectInstructionSet());
  for (int64_t width : kWidths) {
    for (bool values : {false, true}) {
      const auto shape_of = [&](int64_t m) {
        return values ? ValuesShape(layout, m, width) : ScoresShape(layout, m, width);
      };
      const MatmulShape one = shape_of(kRowClasses[0]);
      // One row, repeated at every place.
      const std::vector<float> row = Normal(one.a_stride, 3);
      std::vector<float> a;
      for (int64_t i = 0; i < kTileRows; ++i) a.insert(a.end(), row.begin(), row.end());
      const std::vector<float> b = Normal(kKeyBlock * (kKeyBlock + 16), 4);
      const std::vector<float> expected = Multiply(one, a.data(), b.data());
      for (int64_t m : kRowClasses) {
        const std::vector<float> c = Multiply(shape_of(m), a.data(), b.data());
        for (int64_t i = 0; i < m; ++i) {
          ASSERT_EQ(std::memcmp(&c[i * one.n], &expected[0], static_cast<size_t>(one.n) * sizeof(float)), 0)
              << (values ? "values" : "scores") << ", width " << width << ", row " << i << " of " << m;
        }
      }
    }
  }
}

// What lets a tile be trimmed: columns of weight 0 add nothing, and other columns of scores do not show.
TEST_P(OneDnnMatmulTest, RowBytesDoNotDependOnTheTrimmedWidth) {
  const int64_t full_stride = layout_.ScoreStride(kKeyBlock);
  std::vector<float> weights = Normal(16 * full_stride, 5);
  for (int64_t i = 0; i < 16; ++i) std::fill_n(&weights[i * full_stride + 16], kKeyBlock - 16, 0.0f);
  const std::vector<float> values = Normal(kKeyBlock * 64, 6);
  const std::vector<float> expected = Multiply(ValuesShape(layout_, 16, kKeyBlock), weights.data(), values.data());
  for (int64_t width : kWidths) {
    MatmulShape shape = ValuesShape(layout_, 16, width);
    shape.a_stride = full_stride;
    ASSERT_EQ(Multiply(shape, weights.data(), values.data()), expected) << "width " << width;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, OneDnnMatmulTest, testing::Values(InstructionSet::kAvx2, InstructionSet::kAvx512),
                         [](const auto& tested) { return std::string(Name(tested.param)); });

TEST(TileMatmulTest, RefusesSizesThatWouldKillOneDnn) {
  EXPECT_EQ(TileMatmul::Create({.m = 0}).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(TileMatmul::Create({.k = 0}).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(TileMatmul::Create({.n = 0}).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(WeightLayout::Create({.k = 0}).status().code(), absl::StatusCode::kInternal);
}

TEST(MatmulCacheTest, GivesThreadsOneProductThatAllCanRun) {
  MatmulCache cache;
  const MatmulShape shape = ValuesShape(LayoutFor(InstructionSet::kAvx2), /*m=*/48, /*width=*/64);
  const std::vector<float> a = Normal(shape.m * shape.a_stride, 7);
  const std::vector<float> b = Normal(shape.k * shape.b_stride, 8);
  const std::vector<float> expected = Multiply(shape, a.data(), b.data());
  std::vector<std::vector<float>> results(4, std::vector<float>(expected.size()));
  std::vector<std::thread> threads;
  for (std::vector<float>& result : results) {
    threads.emplace_back([&] {
      absl::StatusOr<std::shared_ptr<const TileMatmul>> matmul = cache.Get(shape);
      std::vector<std::byte> scratchpad(static_cast<size_t>((*matmul)->scratchpad_bytes()));
      absl::StatusOr<MatmulCall> call = MatmulCall::Create(*matmul, scratchpad.data());
      for (int run = 0; run < 20; ++run) EXPECT_TRUE(call->Run(a.data(), b.data(), result.data()).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& result : results) EXPECT_EQ(result, expected);
  EXPECT_EQ(*cache.Get(shape), *cache.Get(shape));
}

}  // namespace
}  // namespace triad
