// The values at which code goes wrong.
#pragma once

#include <cstdint>
#include <limits>

namespace triad {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
inline constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

}  // namespace triad
