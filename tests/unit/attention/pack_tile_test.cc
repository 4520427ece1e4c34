#include "core/attention/pack_tile.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/dims.h"
#include "core/base/scratch.h"
#include "gtest/gtest.h"
#include "tests/support/extreme_values.h"

namespace triad {
namespace {

// Rows of small numbers that every type holds exactly, at an odd address.
struct OddRows {
  std::vector<std::byte> bytes;
  SourceRows rows;

  OddRows(DType dtype, int64_t count, int64_t dims) {
    const int64_t stride_bytes = (dims + 3) * ByteSize(dtype);
    bytes.resize(static_cast<size_t>(1 + count * stride_bytes), std::byte{0xff});
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t i = 0; i < dims; ++i) {
        StoreElement(bytes.data() + 1 + r * stride_bytes + i * ByteSize(dtype), dtype, ValueAt(r, i));
      }
    }
    rows = {.data = bytes.data() + 1, .stride_bytes = stride_bytes, .count = count, .dtype = dtype, .dims = dims};
  }
  static float ValueAt(int64_t r, int64_t i) { return static_cast<float>((r * 31 + i * 7) % 120 - 60) / 4; }
};

TEST(PackRowsTest, WidensEveryTypeFromAnyAddressAndPadsWithZeros) {
  Scratch scratch;
  for (DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
    for (int64_t dims : {1, 3, 8, 15, 16, 17, 31, 33, 64, 80}) {
      const OddRows source(dtype, /*count=*/5, dims);
      const int64_t padded = RoundUp(dims, kPackedStep);
      float* packed = scratch.Allocate<float>(5 * padded);
      PackRows(source.rows, packed);
      for (int64_t r = 0; r < 5; ++r) {
        for (int64_t i = 0; i < padded; ++i) {
          ASSERT_EQ(packed[r * padded + i], i < dims ? OddRows::ValueAt(r, i) : 0) << Name(dtype) << " dims " << dims;
        }
      }
    }
  }
}

TEST(PackBf16PairsTest, PutsEachRowBesideTheNextAndPadsWithZeros) {
  Scratch scratch;
  for (int64_t dims : {1, 3, 8, 15, 16, 17, 33, 64, 80}) {
    for (int64_t count : {1, 2, 5, 8}) {
      const OddRows source(DType::kBf16, count, dims);
      const int64_t padded = RoundUp(dims, kPackedStep);
      auto* packed = scratch.Allocate<uint32_t>(CeilDiv(count, 2) * padded);
      PackBf16Pairs(source.rows, packed);
      for (int64_t r = 0; r < RoundUp(count, 2); ++r) {
        for (int64_t i = 0; i < padded; ++i) {
          const uint32_t pair = packed[r / 2 * padded + i];
          const auto bf16 = static_cast<uint16_t>(r % 2 == 0 ? pair : pair >> 16);
          ASSERT_EQ(Bf16ToF32(bf16), r < count && i < dims ? OddRows::ValueAt(r, i) : 0) << count << " rows, " << dims;
        }
      }
    }
  }
}

TEST(PackRowsTest, KeepsInfinityNanAndSubnormalsOfF16) {
  const uint16_t f16[] = {0x7c00, 0xfc00, 0x7e00, 0x0001, 0x83ff, 0x7bff, 0, 0, 0};
  alignas(64) float packed[16];
  PackRows({.data = reinterpret_cast<const std::byte*>(f16), .count = 1, .dtype = DType::kF16, .dims = 9}, packed);
  for (int i = 0; i < 9; ++i) {
    const float expected = F16ToF32(f16[i]);
    EXPECT_TRUE(packed[i] == expected || (std::isnan(packed[i]) && std::isnan(expected))) << i << ": " << packed[i];
  }
}

TEST(TransposeRowsTest, ColumnsBecomeRows) {
  constexpr int64_t kCount = 32, kDims = 48, kStride = 80;
  Scratch scratch;
  float* rows = scratch.Allocate<float>(kCount * kDims);
  float* transposed = scratch.Allocate<float>(kDims * kStride);
  for (int64_t i = 0; i < kCount * kDims; ++i) rows[i] = static_cast<float>(i);
  TransposeRows({.rows = rows, .stride = kDims, .count = kCount, .columns = kDims}, transposed, kStride);
  for (int64_t r = 0; r < kCount; ++r) {
    for (int64_t i = 0; i < kDims; ++i) ASSERT_EQ(transposed[i * kStride + r], rows[r * kDims + i]);
  }
}

TEST(SanitizeValuesTest, ReplacesWhatIsNotFiniteAndSaysSo) {
  alignas(64) float values[32] = {1, -2};
  EXPECT_FALSE(SanitizeValues(values, 32, /*scale=*/1).has_non_finite);
  values[17] = -kInfinity;
  values[31] = std::numeric_limits<float>::quiet_NaN();
  const ValueTraits traits = SanitizeValues(values, 32, /*scale=*/1);
  EXPECT_TRUE(traits.has_non_finite);
  EXPECT_FALSE(traits.has_huge);
  EXPECT_EQ(values[17], 0);
  EXPECT_EQ(values[31], 0);
  EXPECT_EQ(values[1], -2);
}

TEST(SanitizeValuesTest, FindsAndScalesHugeValuesOfBothTypes) {
  alignas(64) float values[16] = {1, std::numeric_limits<float>::max()};
  EXPECT_TRUE(SanitizeValues(values, 16, /*scale=*/1).has_huge);
  SanitizeValues(values, 16, /*scale=*/0x1p-32f);
  EXPECT_EQ(values[0], 0x1p-32f);
  EXPECT_EQ(values[1], std::numeric_limits<float>::max() * 0x1p-32f);

  uint16_t halves[16] = {F32ToBf16(3), F32ToBf16(0x1p127f), F32ToBf16(kInfinity)};
  const ValueTraits traits = SanitizeBf16Values(halves, 16, /*scale=*/0x1p-32f);
  EXPECT_TRUE(traits.has_huge);
  EXPECT_TRUE(traits.has_non_finite);
  EXPECT_EQ(Bf16ToF32(halves[0]), 3 * 0x1p-32f);
  EXPECT_EQ(Bf16ToF32(halves[1]), 0x1p95f);
  EXPECT_EQ(halves[2], 0);
}

}  // namespace
}  // namespace triad
