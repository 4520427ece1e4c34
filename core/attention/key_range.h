// Arithmetic of key ranges.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/attention/attention_problem.h"

namespace triad {

inline bool IsEmpty(KeyRange keys) { return keys.begin == keys.end; }
inline int64_t Length(KeyRange keys) { return keys.end - keys.begin; }

// The smallest range that holds both.
inline KeyRange Cover(KeyRange a, KeyRange b) {
  if (IsEmpty(a)) return b;
  if (IsEmpty(b)) return a;
  return {.begin = std::min(a.begin, b.begin), .end = std::max(a.end, b.end)};
}

inline KeyRange Intersection(KeyRange a, KeyRange b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {.begin = begin, .end = std::max(begin, std::min(a.end, b.end))};
}

// Part `i` of `parts` about equal ones.
inline KeyRange PartOf(KeyRange whole, int64_t i, int64_t parts) {
  return {.begin = whole.begin + Length(whole) * i / parts, .end = whole.begin + Length(whole) * (i + 1) / parts};
}

}  // namespace triad
