#include "client/tools/bench/lengths.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace triad::tools {
namespace {

constexpr int64_t kMaxZipfLengths = int64_t{1} << 20;  // a table of 8 MiB

absl::Status Malformed(const std::string& flag, const std::string& text) {
  return absl::InvalidArgumentError(absl::StrCat(
      flag, " must be a length >= 1, uniform:LOW:HIGH, zipf:LOW:HIGH or zipf:LOW:HIGH:EXPONENT with 1 <= LOW <= HIGH",
      " (zipf: at most ", kMaxZipfLengths, " lengths, EXPONENT >= 0); was ", text));
}

bool IsValid(const LengthSpec& spec) {
  if (spec.low < 1 || spec.high < spec.low) return false;
  if (spec.shape == LengthSpec::Shape::kUniform) return true;
  return spec.high - spec.low < kMaxZipfLengths && spec.exponent >= 0 && std::isfinite(spec.exponent);
}

}  // namespace

absl::StatusOr<LengthSpec> ParseLengths(const std::string& flag, const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ':');
  LengthSpec spec;
  bool is_read = false;
  if (words.size() == 1) {
    is_read = absl::SimpleAtoi(words[0], &spec.low);
    spec.high = spec.low;
  } else if (words.size() >= 3 && (words[0] == "uniform" || words[0] == "zipf")) {
    spec.shape = words[0] == "zipf" ? LengthSpec::Shape::kZipf : LengthSpec::Shape::kUniform;
    is_read =
        absl::SimpleAtoi(words[1], &spec.low) && absl::SimpleAtoi(words[2], &spec.high) &&
        (words.size() == 3 || (words.size() == 4 && words[0] == "zipf" && absl::SimpleAtod(words[3], &spec.exponent)));
  }
  if (!is_read || !IsValid(spec)) return Malformed(flag, text);
  return spec;
}

std::string ToText(const LengthSpec& lengths) {
  if (lengths.low == lengths.high) return absl::StrCat(lengths.low);
  if (lengths.shape == LengthSpec::Shape::kUniform) return absl::StrCat("uniform:", lengths.low, ":", lengths.high);
  return absl::StrCat("zipf:", lengths.low, ":", lengths.high, ":", lengths.exponent);
}

LengthSampler::LengthSampler(const LengthSpec& spec) : spec_(spec) {
  if (spec.shape != LengthSpec::Shape::kZipf) return;
  double total = 0;
  for (int64_t rank = 1; rank <= spec.high - spec.low + 1; ++rank) {
    total += std::pow(static_cast<double>(rank), -spec.exponent);
    cumulative_.push_back(total);
  }
  for (double& share : cumulative_) share /= total;
}

int64_t LengthSampler::Draw(Random& random) const {
  if (spec_.low == spec_.high) return spec_.low;
  if (cumulative_.empty()) return spec_.low + random.Below(spec_.high - spec_.low + 1);
  const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, random.Unit());
  return spec_.low + (found - cumulative_.begin());
}

}  // namespace triad::tools
