#include "core/layer/projection.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/attention/tile_geometry.h"
#include "core/base/check.h"
#include "core/base/cpu.h"
#include "core/base/dims.h"
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

// A weight [outputs, inputs] and its projection on this machine.
struct PackedProjection {
  PackedProjection(int64_t inputs, int64_t outputs, DType compute) : weight(Normal(inputs * outputs, 11)) {
    ProjectionWeights weights{.inputs = inputs, .bias = Normal(outputs, 12), .compute = compute};
    for (int64_t o = 0; o < outputs; ++o) weights.rows.push_back(&weight[o * inputs]);
    bias = weights.bias;
    absl::StatusOr<std::unique_ptr<const Projection>> made = Projection::Create(weights, DetectInstructionSet());
    TRIAD_CHECK(made.ok(), "oneDNN has this product");
    projection = *std::move(made);
  }

  const std::vector<float> weight;
  std::vector<float> bias;
  std::unique_ptr<const Projection> projection;
};

// Rows of x as the projection's operand: [rows, inputs], all exact in its type.
std::vector<std::byte> OperandOf(const Projection& projection, const std::vector<float>& x) {
  const int64_t rows = static_cast<int64_t>(x.size()) / projection.inputs();
  std::vector<std::byte> operand(static_cast<size_t>(rows * projection.operand_row_bytes()));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < projection.inputs(); ++i) {
      const int64_t element = r * projection.operand_stride() + i;
      StoreElement(&operand[element * ByteSize(projection.operand_dtype())], projection.operand_dtype(),
                   x[r * projection.inputs() + i]);
    }
  }
  return operand;
}

// [class rows, outputs], without bias.
std::vector<float> Multiply(const Projection& projection, const std::byte* operand, int row_class) {
  const int64_t rows = kRowClasses[row_class];
  std::vector<float> y(static_cast<size_t>(rows * projection.outputs()));
  Scratch scratch;
  ProjectionCall call(projection, scratch);
  for (size_t b = 0; b < projection.blocks().size(); ++b) {
    const ColumnBlock& block = projection.blocks()[b];
    auto* result = scratch.Allocate<float>(rows * block.padded_width);
    EXPECT_TRUE(call.Multiply(operand, row_class, b, result).ok());
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(&y[r * projection.outputs() + block.begin], result + r * block.padded_width,
                  static_cast<size_t>(block.width) * sizeof(float));
    }
  }
  return y;
}

struct Size {
  int64_t inputs;
  int64_t outputs;
};
// Inputs about where oneDNN splits its sums (384, 512), widths of one block, several, and with an odd tail.
constexpr Size kSizes[] = {{1, 1},     {3, 17},     {17, 384},   {64, 100},   {384, 1152}, {512, 512},
                           {513, 385}, {768, 2304}, {1000, 640}, {2048, 512}, {4096, 130}};

float RoundTo(DType dtype, float value) { return dtype == DType::kBf16 ? Bf16ToF32(F32ToBf16(value)) : value; }

class ProjectionTest : public testing::TestWithParam<DType> {};

TEST_P(ProjectionTest, MultipliesRowsByTheTransposedWeight) {
  for (const Size& size : kSizes) {
    const PackedProjection packed(size.inputs, size.outputs, GetParam());
    std::vector<float> x = Normal(16 * size.inputs, 13);
    for (float& value : x) value = RoundTo(GetParam(), value);
    const std::vector<float> y = Multiply(*packed.projection, OperandOf(*packed.projection, x).data(), 0);
    for (int64_t r = 0; r < 16; r += 5) {
      for (int64_t o = 0; o < size.outputs; ++o) {
        double expected = 0, terms = 0;
        for (int64_t i = 0; i < size.inputs; ++i) {
          const double term = double{x[r * size.inputs + i]} * RoundTo(GetParam(), packed.weight[o * size.inputs + i]);
          expected += term;
          terms += std::fabs(term);
        }
        // Each step of the sum rounds by half an eps of what has been added up: with signs at random, a few eps of the
        // terms.
        ASSERT_NEAR(y[r * size.outputs + o], expected, 6e-8 * (8 * terms + 1))
            << size.inputs << " to " << size.outputs << ", row " << r << ", output " << o;
      }
    }
  }
}

// What lets requests share products: neither the number of rows nor a row's place nor the other rows show in its bytes.
TEST_P(ProjectionTest, RowBytesDependNeitherOnTheRowClassNorOnThePlaceNorOnOtherRows) {
  for (const Size& size : kSizes) {
    const PackedProjection packed(size.inputs, size.outputs, GetParam());
    const std::vector<float> row = Normal(size.inputs, 14);
    std::vector<float> same, among_nan;
    for (int64_t r = 0; r < kTileRows; ++r) {
      for (float value : row) {
        same.push_back(RoundTo(GetParam(), value));
        among_nan.push_back(r % 7 == 3 ? same.back() : std::numeric_limits<float>::quiet_NaN());
      }
    }
    const auto row_bytes = static_cast<size_t>(size.outputs) * sizeof(float);
    const std::vector<std::byte> operand = OperandOf(*packed.projection, same);
    const std::vector<std::byte> nan_operand = OperandOf(*packed.projection, among_nan);
    const std::vector<float> expected = Multiply(*packed.projection, operand.data(), 0);
    for (size_t c = 0; c < std::size(kRowClasses); ++c) {
      const std::vector<float> y = Multiply(*packed.projection, operand.data(), static_cast<int>(c));
      const std::vector<float> beside_nan = Multiply(*packed.projection, nan_operand.data(), static_cast<int>(c));
      for (int64_t r = 0; r < kRowClasses[c]; ++r) {
        ASSERT_EQ(std::memcmp(&y[r * size.outputs], expected.data(), row_bytes), 0)
            << size.inputs << " to " << size.outputs << ", row " << r << " of " << kRowClasses[c];
        if (r % 7 != 3) continue;
        ASSERT_EQ(std::memcmp(&beside_nan[r * size.outputs], expected.data(), row_bytes), 0)
            << size.inputs << " to " << size.outputs << ", row " << r << " of " << kRowClasses[c] << " beside NaN";
      }
    }
  }
}

// Operands are read where a client's message has them.
TEST_P(ProjectionTest, BytesDoNotDependOnTheAddressOfTheOperand) {
  const PackedProjection packed(512, 512, GetParam());
  std::vector<float> x = Normal(48 * 512, 15);
  for (float& value : x) value = RoundTo(GetParam(), value);
  const std::vector<std::byte> operand = OperandOf(*packed.projection, x);
  const std::vector<float> expected = Multiply(*packed.projection, operand.data(), 1);
  std::vector<std::byte> moved(operand.size() + 64);
  for (int64_t offset : {4, 16, 36}) {
    std::copy(operand.begin(), operand.end(), moved.begin() + offset);
    EXPECT_EQ(Multiply(*packed.projection, moved.data() + offset, 1), expected) << "offset " << offset;
  }
}

TEST_P(ProjectionTest, ComputesZeroForOutputsWithoutWeights) {
  const std::vector<float> weight = Normal(2 * 8, 16);
  const ProjectionWeights weights{.inputs = 8, .rows = {&weight[0], nullptr, &weight[8]}, .compute = GetParam()};
  const auto projection = *Projection::Create(weights, DetectInstructionSet());
  const std::vector<float> y = Multiply(*projection, OperandOf(*projection, std::vector<float>(16 * 8, 1)).data(), 0);
  EXPECT_NE(y[0], 0);
  EXPECT_EQ(y[1], 0);
  EXPECT_NE(y[2], 0);
  EXPECT_EQ(projection->bias(), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Types, ProjectionTest, testing::Values(DType::kF32, DType::kBf16),
                         [](const auto& tested) { return std::string(Name(tested.param)); });

TEST(ProjectionBlocksTest, CoverTheOutputsWithNearlyEqualBlocks) {
  const PackedProjection packed(8, 1000, DType::kF32);
  const std::vector<ColumnBlock>& blocks = packed.projection->blocks();
  ASSERT_EQ(blocks.size(), 3u);
  int64_t end = 0;
  for (const ColumnBlock& block : blocks) {
    EXPECT_EQ(block.begin, end);
    EXPECT_EQ(block.padded_width, RoundUp(block.width, kOperandStep));
    EXPECT_LE(block.width, kBlockColumns);
    end += block.width;
  }
  EXPECT_EQ(end, 1000);
  for (int64_t o = 0; o < 1000; ++o) EXPECT_EQ(packed.projection->bias()[o], packed.bias[o]);
}

}  // namespace
}  // namespace triad
