#include "core/layer/rotary.h"

#include <cmath>

namespace triad {

RotaryTable::RotaryTable(const RotarySpec& spec)
    : pairs_(spec.dim / 2),
      order_(spec.pairs),
      attention_factor_(spec.attention_factor),
      inverse_frequencies_(spec.inverse_frequencies),
      low_turns_(static_cast<size_t>(kLow * pairs_)),
      high_turns_(static_cast<size_t>(kHigh * pairs_)) {
  if (inverse_frequencies_.empty()) {
    for (int64_t pair = 0; pair < pairs_; ++pair) {
      inverse_frequencies_.push_back(
          std::pow(spec.theta, -2 * static_cast<double>(pair) / static_cast<double>(spec.dim)));
    }
  }
  for (int64_t pair = 0; pair < pairs_; ++pair) {
    for (int64_t low = 0; low < kLow; ++low) low_turns_[low * pairs_ + pair] = TurnOf(low, pair);
    for (int64_t high = 0; high < kHigh; ++high) high_turns_[high * pairs_ + pair] = TurnOf(high * kLow, pair);
  }
}

RotaryTable::Turn RotaryTable::TurnOf(int64_t position, int64_t pair) const {
  const double angle = static_cast<double>(position) * inverse_frequencies_[pair];
  return {.cosine = std::cos(angle), .sine = std::sin(angle)};
}

int64_t RotaryTable::SourceDim(int64_t i) const {
  if (i >= dim() || order_ == RotaryPairs::kNeighbours) return i;
  return i % 2 == 0 ? i / 2 : i / 2 + pairs_;
}

void RotaryTable::SinesAndCosines(int64_t position, float* cosines, float* sines) const {
  const int64_t high = position / kLow;
  const Turn* low_turns = &low_turns_[position % kLow * pairs_];
  for (int64_t pair = 0; pair < pairs_; ++pair) {
    const Turn a = high < kHigh ? high_turns_[high * pairs_ + pair] : TurnOf(high * kLow, pair);
    const Turn b = low_turns[pair];
    cosines[pair] = static_cast<float>((a.cosine * b.cosine - a.sine * b.sine) * attention_factor_);
    sines[pair] = static_cast<float>((a.sine * b.cosine + a.cosine * b.sine) * attention_factor_);
  }
}

void RotatePairs(const float* cosines, const float* sines, int64_t pairs, float* dims) {
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const float x = dims[2 * pair];
    const float y = dims[2 * pair + 1];
    dims[2 * pair] = x * cosines[pair] - y * sines[pair];
    dims[2 * pair + 1] = y * cosines[pair] + x * sines[pair];
  }
}

}  // namespace triad
