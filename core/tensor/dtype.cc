#include "core/tensor/dtype.h"

#include <cstring>

#include "core/base/check.h"

namespace triad {
namespace {

constexpr uint32_t kF32Infinity = 0x7f800000;
constexpr uint32_t kF32Magnitude = 0x7fffffff;  // all but the sign

// f32 keeps 23 bits of fraction under a bias of 127, f16 10 under 15.
constexpr int kF16FractionShift = 23 - 10;
constexpr uint32_t kF16BiasDifference = uint32_t{127 - 15} << 23;
constexpr uint32_t kF16Infinity = 0x7c00;
constexpr uint32_t kF16FractionMask = 0x03ff;
constexpr float kF16SubnormalUnit = 0x1p-24f;
constexpr uint32_t kF32SmallestNormalF16 = 0x38800000;  // 2^-14
constexpr uint32_t kF32PastF16 = 0x47800000;            // 2^16; what lies between 65520 and it rounds up to infinity

// `bits` without its lowest `shift` bits, rounded to nearest, ties to even. A carry out of the fraction raises the
// exponent, as it should.
constexpr uint32_t RoundShift(uint32_t bits, int shift) {
  const uint32_t below_half = (uint32_t{1} << (shift - 1)) - 1;
  return (bits + below_half + ((bits >> shift) & 1)) >> shift;
}

template <class T>
T LoadUnaligned(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof(value));
  return value;
}

}  // namespace

absl::string_view Name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "FLOAT32";
    case DType::kBf16:
      return "BFLOAT16";
    case DType::kF16:
      return "FLOAT16";
    case DType::kBool:
      return "BOOL";
  }
  return "UNKNOWN";
}

float F16ToF32(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  uint32_t wide;
  if (magnitude >= kF16Infinity) {  // infinity and NaN, the payload kept
    wide = kF32Infinity | ((magnitude & kF16FractionMask) << kF16FractionShift);
  } else if (magnitude > kF16FractionMask) {
    wide = (magnitude << kF16FractionShift) + kF16BiasDifference;
  } else {  // subnormal here, normal in f32
    wide = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * kF16SubnormalUnit);
  }
  return std::bit_cast<float>(sign | wide);
}

uint16_t F32ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & kF32Magnitude) > kF32Infinity) return static_cast<uint16_t>((bits >> 16) | 0x0040);  // quiet
  return static_cast<uint16_t>(RoundShift(bits, 16));
}

uint16_t F32ToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000;
  const uint32_t magnitude = bits & kF32Magnitude;
  uint32_t narrow;
  if (magnitude > kF32Infinity) {
    narrow = kF16Infinity | 0x0200 | ((magnitude >> kF16FractionShift) & kF16FractionMask);  // quiet
  } else if (magnitude >= kF32PastF16) {
    narrow = kF16Infinity;
  } else if (magnitude >= kF32SmallestNormalF16) {
    narrow = RoundShift(magnitude - kF16BiasDifference, kF16FractionShift);
  } else {
    // One unit in the last place of 0.5 is 2^-24, the subnormals' step: the addition itself rounds to it.
    narrow = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  }
  return static_cast<uint16_t>(sign | narrow);
}

float LoadElement(const void* address, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return LoadUnaligned<float>(address);
    case DType::kBf16:
      return Bf16ToF32(LoadUnaligned<uint16_t>(address));
    case DType::kF16:
      return F16ToF32(LoadUnaligned<uint16_t>(address));
    case DType::kBool:
      return LoadUnaligned<uint8_t>(address) != 0 ? 1.0f : 0.0f;
  }
  return 0.0f;
}

void StoreElement(void* address, DType dtype, float value) {
  TRIAD_CHECK(IsFloat(dtype), "only floating-point elements are stored");
  if (dtype == DType::kF32) {
    std::memcpy(address, &value, sizeof(value));
  } else {
    const uint16_t bits = dtype == DType::kBf16 ? F32ToBf16(value) : F32ToF16(value);
    std::memcpy(address, &bits, sizeof(bits));
  }
}

}  // namespace triad
