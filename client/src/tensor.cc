#include "triad/tensor.h"

#include <bit>
#include <cstring>

namespace triad::client {
namespace {

float Bfloat16ToFloat32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

float Float16ToFloat32(uint16_t bits) {
  constexpr float kSubnormalUnit = 0x1p-24F;       // binary16: 2^-14 * 2^-10
  constexpr uint32_t kExponentShift = 127U - 15U;  // difference of the biases
  const uint32_t sign = (bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1FU;
  const uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * kSubnormalUnit;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  const uint32_t wide_exponent = exponent == 0x1FU ? 0xFFU : exponent + kExponentShift;
  return std::bit_cast<float>(sign | (wide_exponent << 23) | (fraction << 13));
}

// The little-endian element at `address`, which may have any alignment.
template <class T>
T Load(const char* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

}  // namespace

int64_t ByteSize(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat32:
      return 4;
    case DataType::kBfloat16:
      return 2;
    case DataType::kFloat16:
      return 2;
    case DataType::kBool:
      return 1;
  }
  return 0;
}

absl::string_view Name(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat32:
      return "FLOAT32";
    case DataType::kBfloat16:
      return "BFLOAT16";
    case DataType::kFloat16:
      return "FLOAT16";
    case DataType::kBool:
      return "BOOL";
  }
  return "UNKNOWN";
}

// A std::string's bytes are aligned for float: its heap block as any of malloc's, its inner buffer as a pointer.
absl::Span<const float> Tensor::float32() const {
  if (dtype_ != DataType::kFloat32) return {};
  return absl::MakeConstSpan(reinterpret_cast<const float*>(data_.data()), data_.size() / sizeof(float));
}

std::vector<float> Tensor::CopyToFloat32() const {
  const size_t element_bytes = static_cast<size_t>(ByteSize(dtype_));
  if (element_bytes == 0) return {};
  std::vector<float> values(data_.size() / element_bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    const char* address = data_.data() + i * element_bytes;
    switch (dtype_) {
      case DataType::kFloat32:
        values[i] = Load<float>(address);
        break;
      case DataType::kBfloat16:
        values[i] = Bfloat16ToFloat32(Load<uint16_t>(address));
        break;
      case DataType::kFloat16:
        values[i] = Float16ToFloat32(Load<uint16_t>(address));
        break;
      case DataType::kBool:
        values[i] = *address != 0 ? 1.0F : 0.0F;
        break;
    }
  }
  return values;
}

}  // namespace triad::client
