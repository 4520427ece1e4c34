// Random numbers that are the same on every platform, so that a seed names them.
#pragma once

#include <cstdint>

namespace triad {

// SplitMix64 (Steele, Lea and Flood 2014). The standard library's distributions differ between implementations.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // Evenly in [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

  // In [0, bound), bound > 0. Even but for a share of bound / 2^64.
  int64_t Below(int64_t bound) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(bound)); }

  // Mean 0, variance 1 (less 2^-32): the sum of twelve 16-bit uniforms, near enough to normal, within 6 deviations.
  // Made of integers alone, so that no library's logarithm or cosine decides about bytes.
  float Deviate() {
    constexpr int64_t kMean = 12 * 0xffff / 2;
    int64_t sum = 0;
    for (int draw = 0; draw < 3; ++draw) {
      const uint64_t bits = Next();
      for (int shift = 0; shift < 64; shift += 16) sum += static_cast<int64_t>((bits >> shift) & 0xffff);
    }
    return static_cast<float>(sum - kMean) * 0x1p-16f;  // exact: 20 bits
  }

 private:
  uint64_t state_;
};

}  // namespace triad
