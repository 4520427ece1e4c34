// Arithmetic on sizes that a client may have chosen. Everything that multiplies or adds such sizes goes through here.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"

namespace triad {

// a * b, or nullopt when it does not fit. Both must be >= 0.
inline std::optional<int64_t> CheckedMul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// a + b, or nullopt when it does not fit.
inline std::optional<int64_t> CheckedAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// The product of `factors` (1 when empty), or nullopt when it does not fit. A zero factor gives 0 only when the others'
// product fits too, so that an absurd shape is refused whatever its order.
inline std::optional<int64_t> CheckedProduct(absl::Span<const int64_t> factors) {
  int64_t product = 1;
  bool zero = false;
  for (int64_t factor : factors) {
    if (factor == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(product, factor, &product)) {
      return std::nullopt;
    }
  }
  return zero ? 0 : product;
}

// Smallest q with q * unit >= n; n >= 0, unit > 0. For sizes already validated.
constexpr int64_t CeilDiv(int64_t n, int64_t unit) { return n / unit + (n % unit != 0); }
constexpr int64_t RoundUp(int64_t n, int64_t unit) { return CeilDiv(n, unit) * unit; }

}  // namespace triad
