#include "client/tools/bench/load_level.h"

#include <cmath>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace triad::tools {
namespace {

constexpr size_t kMaxLevels = 1000;
constexpr double kMaxRate = 1e7;  // nanoseconds tell neighbours apart up to here
constexpr int64_t kMaxConcurrency = int64_t{1} << 20;

// The numbers of words[first], ...; nullopt where one is no finite number > 0.
std::optional<std::vector<double>> Numbers(const std::vector<std::string>& words, size_t first) {
  std::vector<double> numbers;
  for (size_t i = first; i < words.size(); ++i) {
    double number = 0;
    if (!absl::SimpleAtod(words[i], &number) || !(number > 0) || !std::isfinite(number)) return std::nullopt;
    numbers.push_back(number);
  }
  return numbers;
}

// {value}, or {low, high, step} spelt out; empty where it is neither or has too many.
std::vector<double> Range(const std::vector<double>& numbers) {
  if (numbers.size() == 1) return numbers;
  std::vector<double> values;
  if (numbers.size() != 3) return values;
  const double steps = std::floor((numbers[1] - numbers[0]) / numbers[2] * (1 + 1e-12));
  if (!(steps >= 0 && steps < kMaxLevels)) return values;
  for (double step = 0; step <= steps; ++step) values.push_back(numbers[0] + step * numbers[2]);
  return values;
}

std::string PerSecond(double rate) { return absl::StrCat(rate, "/s"); }

LoadLevel Ramp(double from, double to, Duration duration) {
  return {.label = absl::StrCat("rate ", PerSecond(from), " to ", PerSecond(to)),
          .stages = {{.length = duration, .from = from, .to = to}}};
}

LoadLevel Steps(const std::vector<double>& rates, Duration duration) {
  LoadLevel level;
  const auto length = duration / static_cast<int64_t>(rates.size());
  for (const double rate : rates) level.stages.push_back({.length = length, .from = rate, .to = rate});
  level.label =
      absl::StrCat("rate ", PerSecond(rates.front()), " to ", PerSecond(rates.back()), " in ", rates.size(), " steps");
  return level;
}

}  // namespace

LoadLevel ConstantRate(double rate, Duration duration) {
  return {.label = absl::StrCat("rate ", PerSecond(rate)), .stages = {{.length = duration, .from = rate, .to = rate}}};
}

absl::StatusOr<std::vector<LoadLevel>> ParseConcurrency(const std::string& text) {
  const auto numbers = Numbers(absl::StrSplit(text, ':'), 0);
  std::vector<LoadLevel> levels;
  for (const double value : numbers ? Range(*numbers) : std::vector<double>()) {
    if (value != std::floor(value) || value > kMaxConcurrency) break;
    const auto concurrency = static_cast<int64_t>(value);
    levels.push_back({.label = absl::StrCat("concurrency ", concurrency), .concurrency = concurrency});
  }
  if (levels.empty() || levels.size() != Range(*numbers).size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--concurrency must be N or LOW:HIGH:STEP, whole numbers >= 1 and at most ", kMaxLevels,
                     " levels; was ", text));
  }
  return levels;
}

absl::StatusOr<std::vector<LoadLevel>> ParseRate(const std::string& text, Duration duration) {
  const std::vector<std::string> words = absl::StrSplit(text, ':');
  const bool is_named = words[0] == "ramp" || words[0] == "step";
  const auto numbers = Numbers(words, is_named ? 1 : 0);
  const auto malformed = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("--rate must be R, LOW:HIGH:STEP, ramp:FROM:TO or step:LOW:HIGH:STEP "
                     "with numbers > 0 and <= ",
                     kMaxRate, ", of at most ", kMaxLevels, " levels; was ", text));
  };
  if (!numbers || numbers->empty()) return malformed();
  for (const double number : *numbers) {
    if (number > kMaxRate) return malformed();
  }
  if (words[0] == "ramp") {
    if (numbers->size() != 2) return malformed();
    return std::vector<LoadLevel>{Ramp((*numbers)[0], (*numbers)[1], duration)};
  }
  const std::vector<double> rates = Range(*numbers);
  if (rates.empty()) return malformed();
  if (words[0] == "step") return std::vector<LoadLevel>{Steps(rates, duration)};
  std::vector<LoadLevel> levels;
  for (const double rate : rates) levels.push_back(ConstantRate(rate, duration));
  return levels;
}

}  // namespace triad::tools
