#include "core/attention/store_output.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/attention/pack_tile.h"
#include "core/base/dims.h"
#include "gtest/gtest.h"
#include "tests/support/extreme_values.h"

namespace triad {
namespace {

constexpr DType kFloatTypes[] = {DType::kF32, DType::kBf16, DType::kF16};

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
