#include "core/attention/pack_tile.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/base/dims.h"
#include "core/base/scratch.h"
#include "gtest/gtest.h"
#include "tests/support/extreme_values.h"

namespace triad {
namespace {

constexpr DType kFloatTypes[] = {DType::kF32, DType::kBf16, DType::kF16};

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
  for (DType dtype : kFloatTypes) {
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

TEST(StoreOutputRowTest, RoundsToNearestEvenAtAnyAddressAndWritesNothingElse) {
  alignas(64) float row[48];
  alignas(64) float added[48] = {};
  added[2] = kInfinity;
  for (int i = 0; i < 48; ++i) row[i] = std::ldexp(1.0f + static_cast<float>(i) / 4096, i % 9 - 4);
  row[3] = std::numeric_limits<float>::quiet_NaN();
  for (DType dtype : kFloatTypes) {
    for (int64_t dims : {1, 7, 8, 17, 33, 48}) {
      std::vector<std::byte> stored(static_cast<size_t>(2 + dims * ByteSize(dtype)), std::byte{0x5a});
      StoreOutputRow({.sums = row, .added = added, .dims = dims}, {.stored = stored.data() + 1, .factor = 0.5f}, dtype);
      for (int64_t i = 0; i < dims; ++i) {
        float expected = 0;
        StoreElement(&expected, dtype, row[i] * 0.5f + added[i]);
        expected = LoadElement(&expected, dtype);
        const float got = LoadElement(stored.data() + 1 + i * ByteSize(dtype), dtype);
        ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << Name(dtype) << " " << i << got;
      }
      EXPECT_EQ(stored.front(), std::byte{0x5a});
      EXPECT_EQ(stored.back(), std::byte{0x5a});
    }
  }
}

// Of sums that are none, zeros of either sign and NaN of either sign.
TEST(StoreOutputRowTest, WritesOneZeroAndOneNan) {
  alignas(64) float row[16] = {-0.0f, 0.0f, kNaN, -kNaN, kInfinity, -kInfinity, 1};
  float stored[7];
  auto* const bytes = reinterpret_cast<std::byte*>(stored);
  StoreOutputRow({.sums = row, .dims = 7}, {.stored = bytes}, DType::kF32);
  for (const int i : {0, 1}) EXPECT_EQ(std::bit_cast<uint32_t>(stored[i]), 0u);
  for (const int i : {2, 3}) EXPECT_EQ(std::bit_cast<uint32_t>(stored[i]), std::bit_cast<uint32_t>(kNaN));
  EXPECT_EQ(stored[5], -kInfinity);

  StoreOutputRow({.sums = row, .dims = 7}, {.stored = bytes, .factor = 0}, DType::kF32);
  for (const float value : stored) EXPECT_EQ(std::bit_cast<uint32_t>(value), 0u);
}

TEST(StoreOutputColumnsTest, StoresEachColumnAsARow) {
  constexpr int64_t kWidth = 24;
  alignas(64) float sums[48 * kWidth];
  for (int64_t i = 0; i < 48 * kWidth; ++i) sums[i] = std::ldexp(1.0f + static_cast<float>(i) / 4096, i % 9 - 4);
  sums[3 * kWidth + 2] = -kNaN;
  alignas(64) float added[kWidth * 48] = {1, kInfinity};
  added[5 * 48] = -kInfinity;  // of column 5 if rows are 48 long
  for (const DType dtype : kFloatTypes) {
    for (const int64_t dims : {1, 7, 8, 17, 33, 48}) {
      for (const bool adds : {false, true}) {
        SCOPED_TRACE(std::string(Name(dtype)) + ", " + std::to_string(dims) + " dims");
        const auto row_bytes = static_cast<size_t>(dims * ByteSize(dtype));
        std::vector<std::vector<std::byte>> stored(kWidth, std::vector<std::byte>(row_bytes + 2, std::byte{0x5a}));
        std::vector<std::vector<std::byte>> expected = stored;
        OutputPlace places[kWidth];
        for (int64_t c = 0; c < kWidth; ++c) {
          if (c % 5 == 4) continue;  // nowhere
          places[c] = {.stored = &expected[static_cast<size_t>(c)][1], .factor = static_cast<float>(c % 4) / 2};
          alignas(64) float row[48];
          for (int64_t i = 0; i < 48; ++i) row[i] = sums[i * kWidth + c];
          const float* added_to_row = adds ? added + c * RoundUp(dims, kPackedStep) : nullptr;
          StoreOutputRow({.sums = row, .added = added_to_row, .dims = dims}, places[c], dtype);
          places[c].stored = &stored[static_cast<size_t>(c)][1];
        }
        StoreOutputColumns(
            {.sums = sums, .added = adds ? added : nullptr, .places = places, .dims = dims, .width = kWidth}, dtype);
        EXPECT_EQ(stored, expected);
      }
    }
  }
}

}  // namespace
}  // namespace triad
