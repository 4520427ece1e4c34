// Attention weights as a table that people can read.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace triad::tools {

// Prints `weights` ([words, words] of one head): a row for each word that looks, a column for each word that is looked
// at, and the sum of each row, which is 1.
void PrintAttentionMap(const std::vector<std::string>& words, absl::Span<const float> weights, std::ostream& out);

// The largest |a - b|; the spans are of one size.
double LargestDifference(absl::Span<const float> a, absl::Span<const float> b);

}  // namespace triad::tools
