#include "client/tools/demo/attention_map.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace triad::tools {

void PrintAttentionMap(const std::vector<std::string>& words, absl::Span<const float> weights, std::ostream& out) {
  int width = 6;  // of a weight and the space before it
  for (const std::string& word : words) width = std::max(width, static_cast<int>(word.size()) + 2);
  out << absl::StrFormat("%*s", width, "");
  for (const std::string& word : words) out << absl::StrFormat("%*s", width, word);
  out << absl::StrFormat(" |%*s\n", width, "sum");
  for (size_t row = 0; row < words.size(); ++row) {
    double sum = 0;
    out << absl::StrFormat("%-*s", width, words[row]);
    for (const float weight : weights.subspan(row * words.size(), words.size())) {
      out << absl::StrFormat("%*.3f", width, weight);
      sum += weight;
    }
    out << absl::StrFormat(" |%*.3f\n", width, sum);
  }
}

double LargestDifference(absl::Span<const float> a, absl::Span<const float> b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

}  // namespace triad::tools
