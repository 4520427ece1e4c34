// Element types, and the half-width ones' conversions.
#pragma once

#include <bit>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace triad {

enum class DType : uint8_t { kF32, kBf16, kF16, kBool };

constexpr int64_t ByteSize(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 4;
    case DType::kBf16:
      return 2;
    case DType::kF16:
      return 2;
    case DType::kBool:
      return 1;
  }
  return 0;
}

// The name used on the wire: "FLOAT32", "BFLOAT16", "FLOAT16", "BOOL".
absl::string_view Name(DType dtype);

constexpr bool IsFloat(DType dtype) { return dtype != DType::kBool; }

// Exact widening.
inline float Bf16ToF32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
float F16ToF32(uint16_t bits);

// Rounding to nearest, ties to even; overflow gives infinity; NaN stays NaN (quiet).
uint16_t F32ToBf16(float value);
uint16_t F32ToF16(float value);

// One element of type `dtype` at `address` (any alignment), widened. BOOL gives 0 or 1.
float LoadElement(const void* address, DType dtype);

// Rounds `value` to `dtype` at `address` (any alignment). Not for BOOL.
void StoreElement(void* address, DType dtype, float value);

}  // namespace triad
