#include "core/attention/tile_product.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/scratch.h"
#include "gtest/gtest.h"

namespace triad {
namespace {

constexpr float kUntouched = 12345;

struct Size {
  int64_t rows;
  int64_t depth;
  int64_t columns;
};

// Numbers about 1 at strides larger than the rows, and room for the result.
struct Operands {
  explicit Operands(const Size& size) {
    product.left_stride = size.depth + 3;
    product.right_stride = size.columns + 16;
    product.result_stride = size.columns + 32;
    product.rows = size.rows;
    product.depth = size.depth;
    product.columns = size.columns;
    left = Fill(size.rows * product.left_stride, 7);
    right = Fill(size.depth * product.right_stride, 11);
    result = scratch.Allocate<float>(size.rows * product.result_stride);
    std::fill_n(result, size.rows * product.result_stride, kUntouched);
    product.left = left;
    product.right = right;
    product.result = result;
  }
  // Every row sees the keys [begin(row), end(row)).
  template <class Begin, class End>
  void See(Begin begin, End end) {
    for (int64_t r = 0; r < product.rows; ++r) {
      begins.push_back(static_cast<int32_t>(begin(r)));
      ends.push_back(static_cast<int32_t>(end(r)));
    }
    product.begin = begins.data();
    product.end = ends.data();
  }
  float* Fill(int64_t count, int64_t step) {
    float* values = scratch.Allocate<float>(count);
    for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>((i * step) % 101 - 50) / 37;
    return values;
  }
  // One chain of fused multiply-adds in order: the contract, in scalars.
  float Expected(int64_t row, int64_t column) const {
    float sum = 0;
    for (int64_t i = 0; i < product.depth; ++i) {
      sum = std::fma(left[row * product.left_stride + i], right[i * product.right_stride + column], sum);
    }
    return sum;
  }
  float Result(int64_t row, int64_t column) const { return result[row * product.result_stride + column]; }

  Scratch scratch;
  TileProduct product;
  float* left;
  float* right;
  float* result;
  std::vector<int32_t> begins, ends;
};

const Size kSizes[] = {{1, 1, 16},   {2, 3, 32},   {3, 64, 48},   {4, 31, 64},    {5, 80, 128},
                       {6, 64, 256}, {7, 33, 192}, {13, 128, 16}, {192, 64, 256}, {35, 256, 80}};

TEST(TileProductTest, EveryElementIsOneChainInOrderWhateverTheRows) {
  for (const Size& size : kSizes) {
    Operands keys(size);
    keys.See([](int64_t) { return 0; }, [&](int64_t) { return size.columns; });
    MultiplyKeys(keys.product);
    Operands values(size);
    values.See([](int64_t) { return 0; }, [&](int64_t) { return size.depth; });
    MultiplyValues(values.product);
    for (int64_t r = 0; r < size.rows; ++r) {
      for (int64_t c = 0; c < size.columns; ++c) {
        const float expected = keys.Expected(r, c);
        ASSERT_EQ(keys.Result(r, c), expected) << size.rows << " x " << size.depth << " x " << size.columns;
        ASSERT_EQ(values.Result(r, c), expected) << size.rows << " x " << size.depth << " x " << size.columns;
      }
    }
  }
}

TEST(TileProductTest, KeysThatARowSeesAreComputedAndNothingOutsideTheResultIsWritten) {
  for (const Size& size : kSizes) {
    Operands operands(size);
    const auto begin = [&](int64_t r) { return r % 3 == 2 ? 0 : std::min(r, size.columns); };
    const auto end = [&](int64_t r) { return r % 3 == 2 ? 0 : std::min(r + 40, size.columns); };
    operands.See(begin, end);
    MultiplyKeys(operands.product);
    for (int64_t r = 0; r < size.rows; ++r) {
      for (int64_t c = begin(r); c < end(r); ++c) ASSERT_EQ(operands.Result(r, c), operands.Expected(r, c));
      for (int64_t c = size.columns; c < size.columns + 32; ++c) ASSERT_EQ(operands.Result(r, c), kUntouched);
    }
  }
}

// Weights of 0 outside what a row sees: skipping them is exact, and a row that sees nothing gets zeros.
TEST(TileProductTest, ValuesThatNoRowSeesAreNotRead) {
  for (const Size& size : kSizes) {
    Operands operands(size);
    const int64_t first = size.depth / 4;
    const int64_t last = size.depth - size.depth / 4;
    operands.See([&](int64_t r) { return r % 2 == 1 ? 0 : first; }, [&](int64_t r) { return r % 2 == 1 ? 0 : last; });
    for (int64_t r = 0; r < size.rows; ++r) {
      for (int64_t i = 0; i < size.depth; ++i) {
        if (i < operands.begins[r] || i >= operands.ends[r]) operands.left[r * operands.product.left_stride + i] = 0;
      }
    }
    Operands expected(size);
    std::memcpy(expected.left, operands.left, sizeof(float) * size.rows * operands.product.left_stride);
    for (int64_t i = 0; i < size.depth; ++i) {
      if (i >= first && i < last) continue;
      for (int64_t c = 0; c < size.columns; ++c) {
        operands.right[i * operands.product.right_stride + c] = std::numeric_limits<float>::quiet_NaN();
      }
    }
    MultiplyValues(operands.product);
    for (int64_t r = 0; r < size.rows; ++r) {
      for (int64_t c = 0; c < size.columns; ++c) ASSERT_EQ(operands.Result(r, c), expected.Expected(r, c));
    }
  }
}

}  // namespace
}  // namespace triad
