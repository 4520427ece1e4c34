// How long requests are: one length for all, or drawn for each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/random.h"

namespace triad::tools {

// Lengths from `low` to `high`, both >= 1 and included.
struct LengthSpec {
  enum class Shape { kUniform, kZipf };
  Shape shape = Shape::kUniform;
  int64_t low = 16;
  int64_t high = 16;
  double exponent = 1;  // kZipf: the k-th length from `low` is k^-exponent times as frequent as `low` itself
};

// Reads "N", "uniform:LOW:HIGH", "zipf:LOW:HIGH" or "zipf:LOW:HIGH:EXPONENT". INVALID_ARGUMENT names `flag`, the rule
// and the text.
absl::StatusOr<LengthSpec> ParseLengths(const std::string& flag, const std::string& text);

// The text that ParseLengths reads.
std::string ToText(const LengthSpec& lengths);

class LengthSampler {
 public:
  explicit LengthSampler(const LengthSpec& spec);

  int64_t Draw(Random& random) const;

 private:
  LengthSpec spec_;
  std::vector<double> cumulative_;  // kZipf: share of lengths up to low + index
};

}  // namespace triad::tools
