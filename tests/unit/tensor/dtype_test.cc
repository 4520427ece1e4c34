#include "core/tensor/dtype.h"
#include "tests/support/extreme_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>

namespace triad {
namespace {

// The value of a finite half, from its definition (IEEE 754 binary16), in double: exact.
double HalfValue(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

bool IsHalfFinite(uint16_t bits) { return (bits & 0x7c00) != 0x7c00; }

TEST(Float16Test, WideningIsExactForAllValues) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float wide = F16ToF32(half);
    ASSERT_EQ(std::signbit(wide), (half & 0x8000) != 0) << bits;
    if (IsHalfFinite(half)) {
      ASSERT_EQ(static_cast<double>(wide), HalfValue(half)) << bits;
    } else if ((half & 1023) == 0) {
      ASSERT_TRUE(std::isinf(wide)) << bits;
    } else {
      ASSERT_TRUE(std::isnan(wide)) << bits;
    }
  }
}

TEST(Float16Test, NarrowingGivesBackEveryValueAndQuietsNaN) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const bool is_nan = !IsHalfFinite(half) && (half & 1023) != 0;
    ASSERT_EQ(F32ToF16(F16ToF32(half)), is_nan ? half | 0x0200 : half) << bits;
  }
}

TEST(Float16Test, NarrowingRoundsToNearestTiesToEvenBetweenAllNeighbours) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const auto low = static_cast<uint16_t>(bits);
    const auto high = static_cast<uint16_t>(bits + 1);  // past the largest finite half: infinity
    const double middle = high == 0x7c00 ? 65520.0 : (HalfValue(low) + HalfValue(high)) / 2;
    const auto tie = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(tie), middle);
    ASSERT_EQ(F32ToF16(tie), low & 1 ? high : low) << bits;
    ASSERT_EQ(F32ToF16(std::nextafter(tie, 0.0f)), low) << bits;
    ASSERT_EQ(F32ToF16(std::nextafter(tie, kInfinity)), high) << bits;
    ASSERT_EQ(F32ToF16(-tie), 0x8000 | (low & 1 ? high : low)) << bits;
  }
}

TEST(Float16Test, NarrowingOverflowsToInfinityAndUnderflowsToSignedZero) {
  EXPECT_EQ(F32ToF16(65504.0f), 0x7bff);
  EXPECT_EQ(F32ToF16(1e10f), 0x7c00);
  EXPECT_EQ(F32ToF16(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(F32ToF16(-kInfinity), 0xfc00);
  EXPECT_EQ(F32ToF16(0x1p-25f), 0);
  EXPECT_EQ(F32ToF16(-0x1p-26f), 0x8000);
  EXPECT_EQ(F32ToF16(-std::numeric_limits<float>::denorm_min()), 0x8000);
  EXPECT_EQ(F32ToF16(std::bit_cast<float>(0x7f800001u)), 0x7e00);  // a NaN whose payload is cut off stays one
}

TEST(Bfloat16Test, WideningThenNarrowingGivesBackEveryValueAndQuietsNaN) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float wide = Bf16ToF32(half);
    ASSERT_EQ(std::bit_cast<uint32_t>(wide), bits << 16);
    ASSERT_EQ(F32ToBf16(wide), std::isnan(wide) ? half | 0x0040 : half) << bits;
  }
}

TEST(Bfloat16Test, NarrowingRoundsToNearestTiesToEvenBetweenAllNeighbours) {
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const uint32_t tie = bits << 16 | 0x8000;
    const auto low = static_cast<uint16_t>(bits);
    const auto high = static_cast<uint16_t>(bits + 1);
    ASSERT_EQ(F32ToBf16(std::bit_cast<float>(tie)), low & 1 ? high : low) << bits;
    ASSERT_EQ(F32ToBf16(std::bit_cast<float>(tie - 1)), low) << bits;
    ASSERT_EQ(F32ToBf16(std::bit_cast<float>(tie + 1)), high) << bits;
    ASSERT_EQ(F32ToBf16(std::bit_cast<float>(tie | 0x80000000)), 0x8000 | (low & 1 ? high : low)) << bits;
  }
}

TEST(Bfloat16Test, NaNWhosePayloadIsCutOffStaysNaN) {
  EXPECT_EQ(F32ToBf16(std::bit_cast<float>(0x7f800001u)), 0x7fc0);
  EXPECT_EQ(F32ToBf16(std::bit_cast<float>(0xffffffffu)), 0xffff);
  EXPECT_EQ(F32ToBf16(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(DTypeTest, HasTheNameAndSizeOfTheWire) {
  EXPECT_EQ(Name(DType::kF32), "FLOAT32");
  EXPECT_EQ(Name(DType::kBf16), "BFLOAT16");
  EXPECT_EQ(Name(DType::kF16), "FLOAT16");
  EXPECT_EQ(Name(DType::kBool), "BOOL");
  EXPECT_EQ(ByteSize(DType::kF32), 4);
  EXPECT_EQ(ByteSize(DType::kBf16), 2);
  EXPECT_EQ(ByteSize(DType::kF16), 2);
  EXPECT_EQ(ByteSize(DType::kBool), 1);
}

TEST(DTypeTest, ElementsAreStoredAndLoadedAtAnyAddress) {
  alignas(8) std::byte buffer[16] = {};
  for (int offset = 0; offset < 4; ++offset) {
    for (DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
      StoreElement(buffer + offset, dtype, -1.5f);
      EXPECT_EQ(LoadElement(buffer + offset, dtype), -1.5f) << offset << " " << Name(dtype);
      EXPECT_EQ(buffer[offset + ByteSize(dtype)], std::byte{0}) << offset << " " << Name(dtype);
      std::fill(std::begin(buffer), std::end(buffer), std::byte{0});
    }
  }
}

TEST(DTypeTest, AnyByteButZeroIsTrue) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<std::byte>(byte);
    EXPECT_EQ(LoadElement(&value, DType::kBool), byte == 0 ? 0.0f : 1.0f) << byte;
  }
}

TEST(DTypeDeathTest, ABooleanIsNotStored) {
  std::byte byte{};
  EXPECT_DEATH(StoreElement(&byte, DType::kBool, 1.0f), "only floating-point elements");
}

}  // namespace
}  // namespace triad
